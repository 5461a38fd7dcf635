// Is this run folder what was captured? Finds changed, missing, unlisted and odd files, and what a kill left behind.

import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { isBenchError, messageOf } from '../core/index.ts';
import { hashRange, sha256File } from './digest.ts';
import { isMissing, readFailure } from './failure.ts';
import { type FolderContent, listFolder } from './folder.ts';
import { CHECKSUMS, inRun, MANIFEST } from './layout.ts';
import { readSeals, SealStore } from './seal-store.ts';
import { type Prefix, parseSeals, type Seals } from './seals.ts';

type ProblemKind = 'changed' | 'missing' | 'unlisted' | 'not_a_file' | 'unreadable';

export interface CaptureProblem {
  /** Relative to the run folder. */
  readonly path: string;
  readonly kind: ProblemKind;
  /** One line for a person. */
  readonly text: string;
}

export interface Inspection {
  /** `interrupted`: the run was killed (or still runs), some files were never sealed; `sealed`: it ended by itself. */
  readonly state: 'sealed' | 'interrupted';
  readonly problems: readonly CaptureProblem[];
  /** What is incomplete and allowed to be, one line each: named, never an error. */
  readonly notes: readonly string[];
}

interface Findings {
  readonly problems: CaptureProblem[];
  readonly notes: string[];
}

/** SHA-256 of a file, or null when it is gone. */
async function digestOrNull(path: string): Promise<string | null> {
  try {
    return await sha256File(path);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

async function checkListed(runDir: string, seals: Seals, path: string, found: Findings): Promise<void> {
  const expected = [seals.files.get(path), seals.next.get(path)];
  try {
    const digest = await digestOrNull(inRun(runDir, path));
    if (seals.next.has(path)) found.notes.push(`${path}: a write was under way when the program was killed`);
    if (digest === null && expected[0] === undefined) return;
    if (digest === null) found.problems.push({ path, kind: 'missing', text: `${path} is listed and missing` });
    else if (!expected.includes(digest)) {
      found.problems.push({ path, kind: 'changed', text: `${path} is not what was sealed` });
    }
  } catch (error) {
    found.problems.push({ path, kind: 'unreadable', text: `${path} cannot be read: ${messageOf(error)}` });
  }
}

async function checkPrefix(runDir: string, path: string, prefix: Prefix, found: Findings): Promise<void> {
  const absolute = inRun(runDir, path);
  try {
    const { size } = await stat(absolute);
    const hash = createHash('sha256');
    await hashRange(hash, absolute, 0, Math.min(size, prefix.bytes));
    if (size < prefix.bytes || hash.digest('hex') !== prefix.sha256) {
      const text = `${path}: its first ${prefix.bytes} bytes are not what was sealed`;
      found.problems.push({ path, kind: 'changed', text });
    } else if (size > prefix.bytes) {
      found.notes.push(`${path}: the last ${size - prefix.bytes} bytes were written after the last seal`);
    }
  } catch (error) {
    const kind = isMissing(error) ? 'missing' : 'unreadable';
    found.problems.push({ path, kind, text: `${path} cannot be read: ${messageOf(error)}` });
  }
}

function checkUnlisted(seals: Seals, content: FolderContent, found: Findings): void {
  for (const path of content.files) {
    if (path === CHECKSUMS || seals.files.has(path) || seals.next.has(path) || seals.grows.has(path)) continue;
    if ([...seals.open].some((folder) => path.startsWith(`${folder}/`))) {
      found.notes.push(`${path}: not sealed, its launch was under way`);
    } else {
      found.problems.push({ path, kind: 'unlisted', text: `${path} is not listed in ${CHECKSUMS}` });
    }
  }
  for (const path of content.odd) {
    found.problems.push({ path, kind: 'not_a_file', text: `${path} is a link or a special file, not a captured file` });
  }
  for (const path of content.leftovers) found.notes.push(`${path}: left behind by a killed write, ignored`);
}

async function sealsOf(runDir: string, found: Findings): Promise<Seals | null> {
  try {
    return parseSeals(await readSeals(runDir));
  } catch (error) {
    if (!isBenchError(error)) throw error;
    if (error.code === 'unsupported_version' || error.code === 'not_writable') throw error;
    const kind = error.code === 'missing_file' ? 'missing' : 'changed';
    found.problems.push({ path: CHECKSUMS, kind, text: `${error.message} No file can be judged by it.` });
    return null;
  }
}

/** True when the manifest was never told that the run ended: the kill came between the last seal and it. */
async function saysRunning(runDir: string): Promise<boolean> {
  const text = await readFile(inRun(runDir, MANIFEST), 'utf8').catch(() => '');
  return /^ {2}"status": "running"/m.test(text);
}

/**
 * Compares every file of a run folder with SHA256SUMS.
 *
 * Precisely what a killed run may have: files named by `next` (absent, old or new content), files named by `grows` with
 * their sealed beginning unchanged, unlisted files inside an `open` launch folder, and temporary names. Everything else
 * must match. Throws CaptureError or EnvironmentError only when the folder or the list's form cannot be read at all.
 */
export async function inspectSeals(runDir: string): Promise<Inspection> {
  const found: Findings = { problems: [], notes: [] };
  const content = await listFolder(runDir).catch((error: unknown) => {
    throw readFailure(error, runDir);
  });
  const seals = await sealsOf(runDir, found);
  if (seals === null) return { state: 'sealed', ...found };
  const odd = new Set(content.odd);
  for (const path of [...new Set([...seals.files.keys(), ...seals.next.keys()])].sort()) {
    if (!odd.has(path)) await checkListed(runDir, seals, path, found);
  }
  for (const [path, prefix] of seals.grows) {
    if (!odd.has(path)) await checkPrefix(runDir, path, prefix, found);
  }
  checkUnlisted(seals, content, found);
  const interrupted = seals.open.size > 0 || seals.grows.size > 0 || (await saysRunning(runDir));
  return { state: interrupted ? 'interrupted' : 'sealed', ...found };
}

/** The problems of `inspectSeals`: empty means that the capture is whole, or that of a killed run with nothing lost. */
export async function verifyChecksums(runDir: string): Promise<CaptureProblem[]> {
  return [...(await inspectSeals(runDir)).problems];
}

/** Adds or replaces only the entries of the given files, which must lie in place; no other file is read. */
export async function sealFiles(runDir: string, relativePaths: readonly string[]): Promise<void> {
  const store = await SealStore.open(runDir);
  const digests = new Map<string, string>();
  for (const path of relativePaths) {
    const digest = await sha256File(inRun(runDir, path)).catch((error: unknown) => {
      throw readFailure(error, path);
    });
    digests.set(path, digest);
  }
  await store.seal(digests);
}
