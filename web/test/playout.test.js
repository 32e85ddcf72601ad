/** The audio thread's logic, without an audio thread: pitch, purity, seams, fades, shortage. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Playout } from "../sdk/playout-worklet.js";

const SOURCE_RATE = 24_000;
const BLOCK = 128;

/** PCM16 of a sine, from a sample on. */
function sine(hertz, seconds, { amplitude = 0.5, from = 0 } = {}) {
  const step = (2 * Math.PI * hertz) / SOURCE_RATE;
  return Int16Array.from({ length: seconds * SOURCE_RATE }, (_, i) =>
    Math.round(32_767 * amplitude * Math.sin(step * (from + i))),
  );
}

/** Renders blocks until it is finished, or so many. */
function rendered(playout, maxBlocks = Number.POSITIVE_INFINITY) {
  const blocks = [];
  while (!playout.finished && blocks.length < maxBlocks) {
    const block = new Float32Array(BLOCK);
    playout.render(block);
    blocks.push(block);
  }
  return Float32Array.from(blocks.flatMap((block) => [...block]));
}

function playedOut(samples, deviceRate) {
  const playout = new Playout(SOURCE_RATE, deviceRate, 0.12);
  playout.push(samples);
  playout.end();
  return { playout, output: rendered(playout) };
}

/** The sine of this frequency that fits best, and what is left beside it, in decibels. */
function fit(output, hertz, rate) {
  let [ss, sc, cc, ys, yc] = [0, 0, 0, 0, 0];
  const step = (2 * Math.PI * hertz) / rate;
  for (const [i, y] of output.entries()) {
    const [s, c] = [Math.sin(step * i), Math.cos(step * i)];
    [ss, sc, cc, ys, yc] = [ss + s * s, sc + s * c, cc + c * c, ys + y * s, yc + y * c];
  }
  const determinant = ss * cc - sc * sc;
  const a = (ys * cc - yc * sc) / determinant;
  const b = (yc * ss - ys * sc) / determinant;
  let noise = 0;
  for (const [i, y] of output.entries()) {
    noise += (y - a * Math.sin(step * i) - b * Math.cos(step * i)) ** 2;
  }
  const signal = (output.length * (a * a + b * b)) / 2;
  return { amplitude: Math.hypot(a, b), snr: 10 * Math.log10(signal / noise) };
}

for (const deviceRate of [44_100, 48_000, 96_000, 24_000, 22_050, 16_000]) {
  for (const hertz of [100, 440, 3_000, 6_500]) {
    test(`a ${hertz} Hz tone is one at ${deviceRate} Hz too, of the same loudness, > 60 dB pure`, () => {
      const { output } = playedOut(sine(hertz, 0.5), deviceRate);
      const middle = output.subarray(deviceRate * 0.1, deviceRate * 0.4);
      const { amplitude, snr } = fit(middle, hertz, deviceRate);
      assert.ok(snr > 60, `${snr.toFixed(1)} dB`);
      assert.ok(Math.abs(amplitude - 0.5) < 0.005, `amplitude ${amplitude}`);
    });
  }
}

test("at the device's own rate the samples pass unchanged", () => {
  const samples = sine(1_000, 0.2);
  const { output } = playedOut(samples, SOURCE_RATE);
  for (const [i, sample] of samples.entries()) {
    assert.ok(Math.abs(output[i] - sample / 32_768) < 1e-6);
  }
});

test("what it plays is as long as what came in, to a block", () => {
  for (const deviceRate of [44_100, 48_000]) {
    const { output, playout } = playedOut(sine(440, 1), deviceRate);
    assert.ok(Math.abs(output.length - deviceRate) < 4 * BLOCK + 0.03 * deviceRate);
    assert.equal(playout.position, SOURCE_RATE);
    assert.equal(playout.underruns, 0);
  }
});

test("L02: a tone in chunks of 100 ms has no seam: it is the tone in one piece", () => {
  const whole = playedOut(sine(440, 1), 44_100).output;
  const playout = new Playout(SOURCE_RATE, 44_100, 0.12);
  const parts = [];
  for (let from = 0; from < SOURCE_RATE; from += 2_400) {
    playout.push(sine(440, 0.1, { from }));
    parts.push(rendered(playout, 30));
  }
  playout.end();
  parts.push(rendered(playout));
  const output = Float32Array.from(parts.flatMap((part) => [...part]));
  const start = output.findIndex((value) => value !== 0);
  const wholeStart = whole.findIndex((value) => value !== 0);
  assert.equal(playout.underruns, 0);
  for (let i = 0; i < 44_100 - 10; i += 1) {
    assert.ok(Math.abs(output[start + i] - whole[wholeStart + i]) < 1e-6, `sample ${i}`);
  }
});

test("it starts when the start buffer is there, not before, or with a shorter text's end", () => {
  const playout = new Playout(SOURCE_RATE, 48_000, 0.12);
  playout.push(sine(440, 0.1));
  rendered(playout, 10);
  assert.deepEqual([playout.moving, playout.position], [false, 0]);
  playout.push(sine(440, 0.05));
  rendered(playout, 1);
  assert.equal(playout.moving, true);
  const short = new Playout(SOURCE_RATE, 48_000, 0.12);
  short.push(sine(440, 0.02));
  short.end();
  rendered(short, 1);
  assert.equal(short.moving, true);
});

/** The largest step between neighbours. */
function largestStep(output) {
  let largest = 0;
  for (let i = 1; i < output.length; i += 1) {
    largest = Math.max(largest, Math.abs(output[i] - output[i - 1]));
  }
  return largest;
}
/** What a 440 Hz tone of half amplitude itself steps at 48 kHz, and a little. */
const TONE_STEP = 0.5 * ((2 * Math.PI * 440) / 48_000) * 1.2;

test("a shortage is counted once, dies away without a click, and waits for the buffer again", () => {
  const playout = new Playout(SOURCE_RATE, 48_000, 0.12);
  playout.push(sine(440, 0.21)); // breaks off at a peak's flank, not at zero
  const first = rendered(playout, 200);
  assert.deepEqual([playout.underruns, playout.moving], [1, false]);
  playout.push(sine(440, 0.1, { from: 5_040 }));
  const waiting = rendered(playout, 20);
  assert.ok(waiting.every((value) => Math.abs(value) < 1e-6));
  assert.equal(playout.startSamples, 0.24 * SOURCE_RATE); // twice as much as before
  playout.push(sine(440, 0.39, { from: 7_440 })); // ends at a zero
  playout.end();
  const second = rendered(playout);
  const output = Float32Array.from([...first, ...waiting, ...second]);
  assert.ok(largestStep(output) < 2 * TONE_STEP, `step ${largestStep(output)}`);
  assert.deepEqual([playout.underruns, playout.position], [1, 0.7 * SOURCE_RATE]);
});

test("stop is silent within 100 ms and without a click, whatever is still queued", () => {
  const playout = new Playout(SOURCE_RATE, 48_000, 0.12);
  playout.push(sine(440, 4));
  const before = rendered(playout, 100);
  playout.stop();
  const after = rendered(playout);
  const sounding = after.findLastIndex((value) => Math.abs(value) > 1e-4);
  assert.ok(sounding < 0.02 * 48_000, `${sounding} samples`);
  assert.ok(largestStep(Float32Array.from([...before, ...after])) < TONE_STEP);
  assert.equal(playout.finished, true);
});

test("stop before anything was played is finished at once", () => {
  const playout = new Playout(SOURCE_RATE, 48_000, 0.12);
  playout.push(sine(440, 1));
  playout.stop();
  const output = rendered(playout, 10);
  assert.deepEqual([playout.finished, output.length], [true, BLOCK]);
  assert.ok(output.every((value) => value === 0));
});

test("an end without audio is finished at once", () => {
  const playout = new Playout(SOURCE_RATE, 48_000, 0.12);
  playout.end();
  rendered(playout, 1);
  assert.equal(playout.finished, true);
});

test("a queue longer than its memory grows and loses nothing", () => {
  const playout = new Playout(SOURCE_RATE, SOURCE_RATE, 0.12);
  const samples = sine(440, 20);
  for (let from = 0; from < samples.length; from += 8_000) {
    playout.push(samples.subarray(from, from + 8_000));
    if (from % 24_000 === 0) rendered(playout, 3);
  }
  playout.end();
  rendered(playout);
  assert.deepEqual([playout.position, playout.underruns], [samples.length, 0]);
});

test("nothing above the device's Nyquist frequency folds back", () => {
  const { output } = playedOut(sine(10_500, 0.5), 16_000);
  const middle = output.subarray(1_600, 6_400);
  const power = middle.reduce((sum, value) => sum + value * value, 0) / middle.length;
  assert.ok(10 * Math.log10(power / 0.125) < -60);
});
