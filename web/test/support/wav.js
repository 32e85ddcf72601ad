/** WAV files as programs write them, right and wrong. */

const u16 = (value) => [value & 0xff, value >> 8];
const u32 = (value) => [value & 0xff, (value >>> 8) & 0xff, (value >>> 16) & 0xff, value >>> 24];
const tag = (name) => [...Buffer.from(name, "latin1")];

/** A chunk; `bytes`: the length it claims. */
export function chunk(name, body, bytes = body.length) {
  return [...tag(name), ...u32(bytes), ...body, ...(body.length % 2 ? [0] : [])];
}

export function fmt({ kind = 1, channels = 1, rate = 16_000, bits = 16, frame, extra = [] } = {}) {
  const frameBytes = frame ?? (channels * bits) / 8;
  const body = [...u16(kind), ...u16(channels), ...u32(rate), ...u32(rate * frameBytes)];
  return chunk("fmt ", [...body, ...u16(frameBytes), ...u16(bits), ...extra]);
}

/** What WAVE_FORMAT_EXTENSIBLE adds: the true kind is at its end. */
export function extension(kind, validBits = 16) {
  const guid = [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71];
  return [...u16(22), ...u16(validBits), ...u32(3), ...u16(kind), ...guid];
}

/** A file of chunks; `riff`: the length it claims. */
export function wavFile(chunks, { riff, magic = "RIFF" } = {}) {
  const body = [...tag("WAVE"), ...chunks.flat()];
  return new Blob([Uint8Array.from([...tag(magic), ...u32(riff ?? body.length), ...body])]);
}

export const bytesOf = (samples) => [...new Uint8Array(samples.buffer)];
