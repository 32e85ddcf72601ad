/** WAV files as they are met: every width, odd headers, wrong lengths. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { PlaitError } from "../sdk/index.js";
import { readWav, samplesOf, wavFormat, wavSeconds } from "../sdk/wav-reader.js";
import { bytesOf, chunk, extension, fmt, wavFile } from "./support/wav.js";

const SAMPLES = Int16Array.of(0, 1, -1, 32_767, -32_768);
const DATA = bytesOf(SAMPLES);

async function heard(file) {
  const wav = await readWav(file);
  const blocks = [];
  for await (const block of samplesOf(file, wav)) blocks.push(...block);
  return { format: wavFormat(wav), seconds: wavSeconds(wav), samples: blocks };
}

test("PCM of 16 bits passes as it is, without its header", async () => {
  const { format, seconds, samples } = await heard(wavFile([fmt(), chunk("data", DATA)]));
  assert.deepEqual(format, { encoding: "pcm_s16le", sampleRate: 16_000, channels: 1 });
  assert.deepEqual(samples, [...SAMPLES]);
  assert.equal(seconds, 5 / 16_000);
});

const WIDTHS = {
  "8 bits, which are unsigned": [{ bits: 8 }, [0, 128, 255], [-32_768, 0, 32_512]],
  "24 bits": [{ bits: 24 }, [0xff, 0, 0, 0, 1, 0, 0, 0, 0x80], [0, 1, -32_768]],
  "32 bits": [{ bits: 32 }, bytesOf(Int32Array.of(65_536, -65_536, 2 ** 31 - 1)), [1, -1, 32_767]],
  "20 bits in 24": [{ bits: 20, frame: 3 }, [0, 1, 0], [1]],
  "16 bits, extensible": [{ kind: 0xfffe, extra: extension(1) }, bytesOf(Int16Array.of(7)), [7]],
};
for (const [name, [format, data, expected]] of Object.entries(WIDTHS)) {
  test(`PCM of ${name}, becomes 16 bits`, async () => {
    const { format: sent, samples } = await heard(wavFile([fmt(format), chunk("data", data)]));
    assert.deepEqual(samples, expected);
    assert.equal(sent.encoding, "pcm_s16le");
  });
}

const FLOATS = {
  "32 bits": [{ kind: 3, bits: 32 }, bytesOf(Float32Array.of(0.5, -1.5))],
  "64 bits": [{ kind: 3, bits: 64 }, bytesOf(Float64Array.of(0.5, -1.5))],
  "32 bits, extensible": [
    { kind: 0xfffe, bits: 32, extra: extension(3, 32) },
    bytesOf(Float32Array.of(0.5, -1.5)),
  ],
};
for (const [name, [format, data]] of Object.entries(FLOATS)) {
  test(`floats of ${name} stay floats`, async () => {
    const { format: sent, samples } = await heard(wavFile([fmt(format), chunk("data", data)]));
    assert.deepEqual(samples, [0.5, -1.5]);
    assert.equal(sent.encoding, "pcm_f32le");
  });
}

test("two channels stay two, more become one", async () => {
  const stereo = await heard(wavFile([fmt({ channels: 2 }), chunk("data", DATA.slice(0, 8))]));
  assert.deepEqual([stereo.format.channels, stereo.samples], [2, [0, 1, -1, 32_767]]);
  const data = bytesOf(Int16Array.of(3, 6, 9, -3, -6, -9));
  const three = await heard(wavFile([fmt({ channels: 3 }), chunk("data", data)]));
  assert.deepEqual([three.format.channels, three.samples], [1, [6, -6]]);
});

test("chunks before and after the samples are no samples, also of odd length", async () => {
  const list = chunk("LIST", [1, 2, 3]);
  const { samples } = await heard(
    wavFile([list, fmt(), chunk("fact", [1, 2, 3, 4]), chunk("data", DATA), list]),
  );
  assert.deepEqual(samples, [...SAMPLES]);
});

const LENGTHS = {
  "unknown, as on a pipe": [[fmt(), chunk("data", DATA, 0xffff_ffff)], { riff: 0xffff_ffff }],
  "never filled in": [[fmt(), chunk("data", DATA, 0)], { riff: 36 }],
  "never filled in at all": [[fmt(), chunk("data", DATA, 0)], { riff: 0 }],
  "larger than the file": [[fmt(), chunk("data", DATA, 5_000)], {}],
  "right, with the file's own wrong": [[fmt(), chunk("data", DATA)], { riff: 1 }],
};
for (const [name, [chunks, file]] of Object.entries(LENGTHS)) {
  test(`a length that is ${name}: what is there counts`, async () => {
    assert.deepEqual((await heard(wavFile(chunks, file))).samples, [...SAMPLES]);
  });
}

test("a recording without samples has none, though chunks follow", async () => {
  const { samples, seconds } = await heard(
    wavFile([fmt(), chunk("data", []), chunk("LIST", [1, 2, 3, 4])]),
  );
  assert.deepEqual([samples, seconds], [[], 0]);
});

test("a file beyond 4 GiB says its length elsewhere", async () => {
  const size = Buffer.alloc(28);
  size.writeBigUInt64LE(BigInt(DATA.length), 8);
  const chunks = [chunk("ds64", [...size]), fmt(), chunk("data", DATA, 0xffff_ffff)];
  const file = wavFile([...chunks, chunk("LIST", [9, 9])], { magic: "RF64", riff: 0xffff_ffff });
  assert.deepEqual((await heard(file)).samples, [...SAMPLES]);
});

test("half a sample, or half a frame, at the end is left out", async () => {
  const mono = await heard(wavFile([fmt(), chunk("data", [...DATA, 1])]));
  assert.equal(mono.samples.length, 5);
  const stereo = await heard(wavFile([fmt({ channels: 2 }), chunk("data", DATA)]));
  assert.equal(stereo.samples.length, 4);
});

test("a long file is read in slices, none of them large, and joined they are the file", async () => {
  const samples = Int16Array.from({ length: 100_003 }, (_, i) => (i * 31) % 30_000);
  const header = [fmt({ channels: 1 }), chunk("data", [], samples.byteLength)];
  const file = new Blob([wavFile(header, { riff: 36 + samples.byteLength }), samples]);
  const slices = [];
  const watched = {
    size: file.size,
    slice: (from, to) => {
      slices.push(to - from);
      return file.slice(from, to);
    },
  };
  assert.deepEqual((await heard(watched)).samples, [...samples]);
  assert.ok(Math.max(...slices) <= 65_536, `${Math.max(...slices)} bytes at once`);
});

for (const [name, bytes] of Object.entries({
  nothing: "",
  "three bytes": "RIF",
  "a header cut short": "RIFF1234WAV",
  "an AVI file": "RIFF1234AVI LIST",
  "an MP3 file": "ID3\u0004.............",
  text: "Hello, this is no audio at all.",
})) {
  test(`${name} is no WAV file`, async () => {
    assert.equal(await readWav(new Blob([bytes])), null);
  });
}

const UNREADABLE = {
  "no format": [[chunk("data", DATA)], /before their format/],
  "no samples": [[fmt()], /no data chunk/],
  "nothing in it": [[], /does not say its format/],
  "a format cut short": [[chunk("fmt ", [1, 0])], /too short/],
  "a compressed kind": [[fmt({ kind: 0x55, bits: 0, frame: 1 }), chunk("data", DATA)], /format 85/],
  "no channels": [[fmt({ channels: 0, frame: 2 }), chunk("data", DATA)], /0 channels/],
  "no rate": [[fmt({ rate: 0 }), chunk("data", DATA)], /0 Hz/],
  "frames that do not fit": [
    [fmt({ channels: 2, frame: 3 }), chunk("data", DATA)],
    /3 bytes for 2/,
  ],
  "more bits than room": [[fmt({ bits: 24, frame: 2 }), chunk("data", DATA)], /24 bits, 2 bytes/],
  "extensible without its kind": [[fmt({ kind: 0xfffe }), chunk("data", DATA)], /format 65534/],
};
for (const [name, [chunks, message]] of Object.entries(UNREADABLE)) {
  test(`a WAV file with ${name} is refused with what is wrong`, async () => {
    const error = await readWav(wavFile(chunks)).catch((reason) => reason);
    assert.ok(PlaitError.isInstance(error));
    assert.equal(error.code, "invalid_audio");
    assert.match(error.message, message);
  });
}
