/** The codec against the vectors both ends share; tests/vectors/ is the wire's, not ours. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { decodeBinary, encodeBinary } from "../sdk/binary.js";
import { CodecError, decode, encode, parse } from "../sdk/codec.js";

const vectorsUrl = new URL("../../tests/vectors/plait.v1.json", import.meta.url);
const vectors = JSON.parse(readFileSync(vectorsUrl, "utf8"));

const camel = (key) => key.replace(/_([a-z0-9])/g, (_, c) => c.toUpperCase());
const fromHex = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));

/** What decode must give: every key in camelCase but those inside `data`. */
function inCamel(value, key) {
  if (key === "data" || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((entry) => inCamel(entry));
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [camel(k), inCamel(v, k)]));
}

for (const part of ["client", "server", "binary", "invalid_binary"]) {
  test(`there are vectors for ${part}`, () => assert.ok(vectors[part].length > 0));
}

for (const { name, message } of vectors.client) {
  test(`client message encodes: ${name}`, () => {
    const fields = Object.entries(message).map(([key, value]) => [camel(key), value]);
    assert.deepEqual(JSON.parse(encode(Object.fromEntries(fields))), message);
  });
}

for (const { name, message } of vectors.server) {
  test(`server message decodes: ${name}`, () => {
    const decoded = decode(parse(JSON.stringify(message)));
    assert.equal(decoded.type, message.type);
    assert.deepEqual(decoded.id, message.id);
    assert.deepEqual({ ...decoded, error: undefined }, { ...inCamel(message), error: undefined });
    if (message.error) assert.equal(decoded.error.code, message.error.code);
  });
}

for (const vector of vectors.binary) {
  test(`binary frame reads and writes: ${vector.name}`, () => {
    const bytes = fromHex(vector.hex);
    const { header, payload } = decodeBinary(bytes.buffer);
    const { kind, flags, id, seq, aux } = vector;
    assert.deepEqual(header, { kind, flags, id, seq, aux });
    assert.equal(Buffer.from(payload).toString("hex"), vector.payload_hex);
    assert.deepEqual(encodeBinary(header, payload), bytes);
  });
}

for (const { name, hex } of vectors.invalid_binary) {
  test(`invalid binary frame is refused: ${name}`, () => {
    assert.throws(() => decodeBinary(fromHex(hex).buffer), CodecError);
  });
}

test("a payload is an aligned view, not a copy", () => {
  const payload = new Uint8Array(new Float32Array([1, 2]).buffer);
  const frame = encodeBinary({ kind: 3, flags: 0, id: 1, seq: 1, aux: 0 }, payload);
  const decoded = decodeBinary(frame.buffer);
  assert.equal(decoded.payload.buffer, frame.buffer);
  assert.deepEqual([...new Float32Array(frame.buffer, decoded.payload.byteOffset)], [1, 2]);
});

test("fields a message does not have stay off the wire", () => {
  assert.equal(encode({ type: "cancel", id: 1, heardMs: undefined }), '{"type":"cancel","id":1}');
});

test("an unknown server type is null, so that newer servers can say more", () => {
  assert.equal(decode({ type: "constructor" }), null);
  assert.equal(decode({ type: "resumed", id: 1 }), null);
});

for (const text of ["", "nul", "[]", "null", '"x"', "{}", '{"type":1}']) {
  test(`a text frame ${JSON.stringify(text)} is refused`, () => {
    assert.throws(() => parse(text), CodecError);
  });
}

for (const id of [undefined, null, 0, -1, 1.5, 2 ** 32, "1", true]) {
  test(`a stream message with id ${JSON.stringify(id)} is refused`, () => {
    assert.throws(() => decode({ type: "started", id }), CodecError);
  });
}
