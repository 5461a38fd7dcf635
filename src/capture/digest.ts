// SHA-256 of texts, bytes and files.

import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';

export const sha256 = (content: Uint8Array | string): string => createHash('sha256').update(content).digest('hex');

/** Feeds bytes [from, to) of a file into `hash`; returns how many there were. */
export async function hashRange(hash: Hash, path: string, from = 0, to = Number.POSITIVE_INFINITY): Promise<number> {
  if (to <= from) return 0;
  let bytes = 0;
  for await (const chunk of createReadStream(path, { start: from, end: to - 1, highWaterMark: 1 << 20 })) {
    hash.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
  }
  return bytes;
}

/** Digest of a whole file, read in pieces. Rejects with the file system's own error. */
export async function sha256File(path: string): Promise<string> {
  const hash = createHash('sha256');
  await hashRange(hash, path);
  return hash.digest('hex');
}
