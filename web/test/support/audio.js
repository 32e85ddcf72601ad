/** A browser's audio without a browser: contexts and nodes that note what is done to them, and say what the test says. */

export class FakeContext extends EventTarget {
  state = "running";
  sampleRate = 48_000;
  currentTime = 0;
  outputLatency = 0.05;
  destination = { name: "speakers" };
  loads = [];
  resumed = 0;
  audioWorklet = {
    addModule: async (url) => {
      this.loads.push(url);
      if (this.noModule) throw new Error("404");
    },
  };

  async resume() {
    this.resumed += 1;
  }

  createMediaStreamSource(mediaStream) {
    this.source = new FakeNode(this, "source", mediaStream);
    return this.source;
  }

  createGain() {
    return new FakeNode(this, "gain");
  }

  become(state) {
    this.state = state;
    this.dispatchEvent(new Event("statechange"));
  }
}

export class FakeNode {
  static made = [];
  posted = [];
  port = { onmessage: null, postMessage: (message) => this.posted.push(message) };

  constructor(context, name, options) {
    Object.assign(this, { context, name, options });
    FakeNode.made.push(this);
  }

  connect(destination) {
    this.destination = destination;
  }

  disconnect() {
    this.destination = null;
  }

  /** What the audio thread says. */
  report(fields) {
    const report = {
      time: 0,
      position: 0,
      moving: true,
      underruns: 0,
      startSamples: 2_880,
      finished: false,
    };
    this.port.onmessage({ data: { ...report, ...fields } });
  }
}
globalThis.AudioWorkletNode = FakeNode;

class FakeTrack extends EventTarget {
  kind = "audio";
  readyState = "live";

  /** The device goes. */
  end() {
    this.readyState = "ended";
    this.dispatchEvent(new Event("ended"));
  }

  /** Its owner stops it: no event. */
  stop() {
    this.readyState = "ended";
  }
}

export class FakeMediaStream {
  constructor(tracks = [new FakeTrack()]) {
    this.tracks = tracks;
  }

  getAudioTracks() {
    return this.tracks;
  }
}
globalThis.MediaStream = FakeMediaStream;
