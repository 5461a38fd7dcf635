// Takes secrets out of a server's log, line by line, without touching any other byte.

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { isMissing } from './failure.ts';
import { redactText } from './redact.ts';

/** One byte a character both ways: what is no text survives. */
const BYTES = 'latin1';

async function hasSecret(path: string): Promise<boolean> {
  try {
    for await (const line of createInterface({ input: createReadStream(path, BYTES) })) {
      if (redactText(line).count > 0) return true;
    }
    return false;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/**
 * Writes a copy of the log at `from` without secrets to `to`, synced, and returns its SHA-256. Null, and no copy, when
 * the log holds none or does not exist. Rejects with the file system's own error.
 */
export async function scrubLog(from: string, to: string): Promise<string | null> {
  if (!(await hasSecret(from))) return null;
  const hash = createHash('sha256');
  const file = await open(to, 'w');
  try {
    let rest = '';
    const put = async (text: string): Promise<void> => {
      const bytes = Buffer.from(redactText(text).value, BYTES);
      hash.update(bytes);
      await file.writeFile(bytes);
    };
    for await (const chunk of createReadStream(from, { encoding: BYTES, highWaterMark: 1 << 20 })) {
      const text = rest + String(chunk);
      const end = text.lastIndexOf('\n') + 1;
      rest = text.slice(end);
      await put(text.slice(0, end));
    }
    await put(rest);
    await file.sync();
  } finally {
    await file.close();
  }
  return hash.digest('hex');
}
