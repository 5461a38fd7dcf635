// Memory that load workers share, and its digest in one byte order.

import { createHash } from 'node:crypto';
import { endianness } from 'node:os';

export const sharedInt32 = (length: number): Int32Array =>
  new Int32Array(new SharedArrayBuffer(length * Int32Array.BYTES_PER_ELEMENT));

export const sharedFloat64 = (values: Float64Array): Float64Array => {
  const shared = new Float64Array(new SharedArrayBuffer(values.byteLength));
  shared.set(values);
  return shared;
};

/** SHA-256, hex, of the views one after the other, numbers as little-endian. */
export function sha256(...views: (Float64Array | Int32Array | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const view of views) hash.update(littleEndian(view));
  return hash.digest('hex');
}

function littleEndian(view: Float64Array | Int32Array | Uint8Array): Uint8Array {
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  if (endianness() === 'LE' || view.BYTES_PER_ELEMENT === 1) return bytes;
  const copy = Buffer.from(bytes);
  return view.BYTES_PER_ELEMENT === 8 ? copy.swap64() : copy.swap32();
}
