// What lies in a run folder, without following links.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isLeftover } from './layout.ts';

export interface FolderContent {
  /** Regular files, relative with forward slashes, sorted. */
  readonly files: readonly string[];
  /** Links, sockets, pipes and devices: no capture has any. */
  readonly odd: readonly string[];
  /** Half-written files and folders of a killed writer; nothing below them is listed. */
  readonly leftovers: readonly string[];
}

/** Lists `under` (relative to `root`) to any depth. Rejects with the file system's own error. */
export async function listFolder(root: string, under = ''): Promise<FolderContent> {
  const found = { files: [] as string[], odd: [] as string[], leftovers: [] as string[] };
  const pending = [under];
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (isLeftover(path)) found.leftovers.push(path);
      else if (entry.isDirectory()) pending.push(path);
      else if (entry.isFile()) found.files.push(path);
      else found.odd.push(path);
    }
  }
  for (const list of Object.values(found)) list.sort();
  return found;
}
