import { connect } from "../../sdk/index.js";

const plait = connect();
const headers = {}; // where the server asks for a token: { authorization: "Bearer …" }

plait.on("state", ({ state }) => console.log("connection", state)); // open, reconnecting, closed
for (const { id, method } of await plait.models()) console.log("model", id, method);

const response = await fetch("/v1/status", { headers }); // as JSON, for people who watch
const { memory, cores, models, apps } = await response.json();
console.log("memory", memory, cores, models, apps);
const counters = await fetch("/metrics", { headers }); // as text, for Prometheus
console.log(await counters.text());
