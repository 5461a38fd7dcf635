// Turns what the file system throws into errors that a person can act on.

import { type BenchError, CaptureError, EnvironmentError, isBenchError, messageOf } from '../core/index.ts';

function errnoOf(error: unknown): string | null {
  const code = typeof error === 'object' && error !== null ? (error as { code?: unknown }).code : null;
  return typeof code === 'string' ? code : null;
}

export const isMissing = (error: unknown): boolean => errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR';

function environmentFailure(code: string, path: string, cause: unknown): EnvironmentError | null {
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new EnvironmentError('disk_full', `The disk is full: ${path} could not be written.`, {
        advice: 'Free some space, or choose an output folder on another disk. What was captured before is intact.',
        details: { path },
        cause,
      });
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new EnvironmentError('not_writable', `No permission: ${path} (${code}).`, {
        advice: 'Choose a folder that this user may read and write, or change its permissions.',
        details: { path },
        cause,
      });
    case 'EMFILE':
    case 'ENFILE':
      return new EnvironmentError('too_many_files', `Too many open files while using ${path} (${code}).`, {
        advice: 'Raise the limit of open files (ulimit -n) and run again.',
        details: { path },
        cause,
      });
    default:
      return null;
  }
}

/** The typed error for a failed write of `path`. Typed errors pass through. */
export function writeFailure(error: unknown, path: string): BenchError {
  if (isBenchError(error)) return error;
  return (
    environmentFailure(errnoOf(error) ?? '', path, error) ??
    new CaptureError('write_failed', `${path} could not be written: ${messageOf(error)}.`, {
      advice: 'Check the disk and the folder. What was captured before is intact.',
      details: { path },
      cause: error,
    })
  );
}

/** The typed error for a failed read of `path`. Typed errors pass through. */
export function readFailure(error: unknown, path: string): BenchError {
  if (isBenchError(error)) return error;
  if (isMissing(error)) {
    return new CaptureError('missing_file', `${path} is missing.`, {
      advice: 'Run `tokbench verify` on the run folder to see everything that is missing or changed; copy it again.',
      details: { path },
      cause: error,
    });
  }
  return environmentFailure(errnoOf(error) ?? '', path, error) ?? damaged(path, messageOf(error), error);
}

/** A file whose content cannot be what was captured. */
export function damaged(path: string, why: string, cause?: unknown): CaptureError {
  return new CaptureError('damaged_file', `${path} cannot be read: ${why.replace(/\.$/, '')}.`, {
    advice:
      'The file was cut short or changed. Run `tokbench verify` on the run folder; copy the file from its source.',
    details: { path },
    cause,
  });
}

/** A file in a form that this program does not know: refused by name rather than misread. */
export function unsupportedVersion(path: string, found: unknown, known: string): CaptureError {
  const name = typeof found === 'string' ? found : JSON.stringify(found ?? null);
  return new CaptureError('unsupported_version', `${path} has schema ${name}; this program reads ${known}.`, {
    advice: 'Use the version of tokenomics-bench that wrote the run, or a newer one (manifest.json names it).',
    details: { path, found: name, known },
  });
}

/** A cell or a launch that the run already holds: a capture is never overwritten. */
export function alreadyCaptured(path: string): CaptureError {
  return new CaptureError('already_captured', `${path} was captured before.`, {
    advice: 'This is a fault of the program: report it with this message. What was captured is intact.',
    details: { path },
  });
}
