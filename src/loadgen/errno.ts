// Whose fault is a socket error? The client's own ones make a cell invalid; the others are the server's.

import { messageOf } from '../core/index.ts';

const CLIENT_SIDE: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN']);

export const errorCode = (error: unknown): string => {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
};

/** Descriptors, local ports, names: what this machine lacks. A refused or silent connection is the server's. */
export const isClientSide = (error: unknown): boolean => CLIENT_SIDE.has(errorCode(error));

/** One line for the record. */
export function describeSocketError(error: unknown): string {
  const code = errorCode(error);
  const message = messageOf(error);
  return code === '' || message.includes(code) ? message : `${code}: ${message}`;
}
