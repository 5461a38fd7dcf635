// Finds what looks like a secret, or names one board or machine, and replaces it before anything is written.

import { createHash } from 'node:crypto';

export const REDACTED = '[redacted]';

/** Shapes of secrets in free text. The first group, where there is one, is kept: it says what was there. */
const SECRETS: readonly RegExp[] = [
  /()\bhf_[A-Za-z0-9]{20,}/g,
  /()\bsk-[A-Za-z0-9_-]{16,}/g,
  /()\bnvapi-[A-Za-z0-9_-]{20,}/g,
  /()\bgh[pousr]_[A-Za-z0-9]{20,}/g,
  /()\bgithub_pat_[A-Za-z0-9_]{20,}/g,
  /()\bglpat-[A-Za-z0-9_-]{16,}/g,
  /()\bxox[abprs]-[A-Za-z0-9-]{10,}/g,
  /()\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  /()\bAIza[A-Za-z0-9_-]{30,}/g,
  /()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}/g,
  /()-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  /(\bBearer\s+)[A-Za-z0-9._~+/-]{8,}=*/gi,
  /(\bBasic\s+)[A-Za-z0-9+/]{12,}=*/g,
  /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@:'"]*:[^\s/@'"]+(?=@)/gi,
  /(\b[a-z0-9_-]*(?:api[_-]?key|secret[_-]?access[_-]?key|access[_-]?token|auth[_-]?token|hf[_-]?token|password|passwd|client[_-]?secret)["']?\s*[:=]\s*\[?["']?)(?!\$\{|\[|redacted\]|null\b|none\b|true\b|false\b)[^\s"',;}\]&]{4,}/gi,
];

/** Names of variables, keys and flags whose values are secrets whatever they look like. `max_tokens` is none. */
const SECRET_NAME =
  /(?:^|[-_.])(?:api[-_]?key|access[-_]?key(?:[-_]?id)?|private[-_]?key|secret(?:[-_]?(?:access[-_]?)?key)?|token|auth|authorization|password|passwd|passphrase|credentials?|cookie)$/i;

const UUID = /\b(?:GPU-|MIG-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi;
const IDENTITY_NAME = /(?:^|[-_.]|[a-z])(?:serial|uuid|machine[-_]?id|host[-_]?name)(?:[-_]?number)?$/i;

/** True for names such as HF_TOKEN, apiKey or --password. */
export const isSecretName = (name: string): boolean =>
  SECRET_NAME.test(name) || SECRET_NAME.test(name.replace(/([a-z0-9])([A-Z])/g, '$1_$2'));

/** A stable stand-in for an identity: equal boards stay equal, none can be named. First 16 hex digits of SHA-256. */
export function hashIdentity(value: string): string {
  if (/^sha256:[0-9a-f]{16}$/.test(value)) return value;
  return `sha256:${createHash('sha256').update(value).digest('hex').slice(0, 16)}`;
}

export interface Redacted<T> {
  readonly value: T;
  /** How many values were replaced. */
  readonly count: number;
}

/** Secrets that this process holds, in every form in which a server may quote them. */
const known = new Set<string>();
/** A shorter one may be a word of ours, and is replaced only in what a server said. */
const UNMISTAKABLE = 8;

/**
 * From now on the value is replaced in what this process writes, whatever it looks like. For keys that are sent to a
 * server: it may quote them in an error.
 */
export function rememberSecret(secret: string): void {
  if (secret === '') return;
  for (const form of [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]) known.add(form);
}

/** `redactText` for the words of a server, which may quote even a short key. */
export function redactServerText(text: string): string {
  return redactText([...known].reduce((clean, secret) => clean.replaceAll(secret, REDACTED), text)).value;
}

/** Replaces the secrets that this process holds, and everything in a text that has the shape of one. */
export function redactText(text: string): Redacted<string> {
  let count = 0;
  let value = text;
  for (const secret of known) {
    if (secret.length < UNMISTAKABLE) continue;
    count += value.split(secret).length - 1;
    value = value.replaceAll(secret, REDACTED);
  }
  for (const pattern of SECRETS) {
    value = value.replace(pattern, (_all, kept: string) => {
      count += 1;
      return `${kept}${REDACTED}`;
    });
  }
  return { value, count };
}

/** Redacts a config text: secrets by shape, and the values of upper-case keys (variables) that are named like one. */
export function redactConfig(text: string): Redacted<string> {
  let count = 0;
  const value = text.replace(
    /^(\s*["']?([A-Z][A-Z0-9_]*)["']?\s*:[ \t]+)(\S.*)$/gm,
    (all, head: string, name: string) => {
      if (!isSecretName(name)) return all;
      count += 1;
      return `${head}"${REDACTED}"`;
    },
  );
  const shaped = redactText(value);
  return { value: shaped.value, count: count + shaped.count };
}

export interface RedactOptions {
  /** Also replace UUIDs and serials, wherever they are, by their digests. */
  readonly identities: boolean;
}

/**
 * A deep copy of plain data with secrets replaced: by the name of their key, by the flag before them in a list of
 * arguments, or by their shape. Numbers, booleans and null stay.
 */
export function redactDeep<T>(value: T, options: RedactOptions): Redacted<T> {
  let count = 0;
  const text = (raw: string): string => {
    const redacted = redactText(raw);
    count += redacted.count;
    return options.identities ? redacted.value.replace(UUID, hashIdentity) : redacted.value;
  };
  const named = (name: string, item: unknown): unknown => {
    if (typeof item !== 'string' || item === '') return walk(item);
    if (isSecretName(name) && item !== REDACTED) {
      count += 1;
      return REDACTED;
    }
    return options.identities && IDENTITY_NAME.test(name) ? hashIdentity(item) : text(item);
  };
  const argument = (item: unknown, at: number, list: readonly unknown[]): unknown => {
    const before = list[at - 1];
    if (typeof before === 'string' && /^--?[^=]+$/.test(before)) return named(before.replace(/^-+/, ''), item);
    const flag = typeof item === 'string' ? /^(--?([^=\s]+)=)(.+)$/s.exec(item) : null;
    return flag === null ? walk(item) : `${flag[1]}${named(flag[2]!, flag[3]!)}`;
  };
  const walk = (item: unknown): unknown => {
    if (typeof item === 'string') return text(item);
    if (Array.isArray(item)) return item.map(argument);
    if (typeof item !== 'object' || item === null) return item;
    return Object.fromEntries(Object.entries(item).map(([name, child]) => [name, named(name, child)]));
  };
  return { value: walk(value) as T, count };
}
