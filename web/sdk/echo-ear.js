/**
 * The echo guard's place in the audio graph: what is played passes through here on its way to the loudspeaker, and is
 * compared with the microphone, block by block. Does not know what follows from it.
 */

/** @import { EchoReport } from "./echo-model.js" */

import { ECHO_MODULE, loadModule } from "./audio-context.js";
import { EchoModel } from "./echo-model.js";

export class EchoEar {
  #context;
  #on;
  #model = new EchoModel();
  #over = false;
  /** @type {AudioWorkletNode | null} */
  #node = null;
  /** @type {MediaStreamAudioSourceNode | null} */
  #source = null;

  /** Where the answer is played into. @type {AudioNode} */
  destination;

  /**
   * @param {AudioContext} context
   * @param {MediaStreamTrack} track
   * @param {string | URL | undefined} moduleUrl
   * @param {{ report(report: EchoReport): void, failed(reason: unknown): void }} on
   */
  constructor(context, track, moduleUrl, on) {
    this.#context = context;
    this.#on = on;
    this.destination = context.createGain();
    this.destination.connect(context.destination);
    loadModule(context, moduleUrl ?? ECHO_MODULE)
      .then(() => this.#connect(track))
      .catch((reason) => this.#over || on.failed(reason));
  }

  /** What still sounds fades out by itself: the way to the loudspeaker stays until nobody plays into it. */
  close() {
    if (this.#over) return;
    this.#over = true;
    this.#node?.port.postMessage("stop"); // its processor is let go
    this.#source?.disconnect();
    if (!this.#node) return;
    this.destination.disconnect(this.#node);
    this.#node.disconnect();
  }

  /** @param {MediaStreamTrack} track */
  #connect(track) {
    if (this.#over) return;
    const node = new AudioWorkletNode(this.#context, "plait-echo", {
      numberOfInputs: 2,
      outputChannelCount: [1],
      channelCount: 1,
      channelCountMode: "explicit",
      channelInterpretation: "speakers",
    });
    this.#node = node;
    node.port.onmessage = ({ data }) => this.#over || this.#on.report(this.#model.judge(data));
    node.onprocessorerror = () => this.#on.failed(new Error("The browser's audio thread failed."));
    this.#source = this.#context.createMediaStreamSource(new MediaStream([track]));
    this.#source.connect(node, 0, 0);
    this.destination.connect(node, 0, 1);
    node.connect(this.#context.destination); // silent, and kept running by it
  }
}
