// What a request to someone else's server must carry: the API key and further headers, read when they are needed and
// kept out of everything that is written.

import { readFileSync } from 'node:fs';
import { ConfigError, messageOf, type OpenAiEngineSpec } from '../core/index.ts';

export interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  /** Values that must never be written anywhere. */
  readonly secrets: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** What one header line can hold; a line break would let a value forge further headers. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/**
 * Headers of every request to the server.
 * @throws ConfigError `api_key_missing`, `api_key_unusable`, `header_variable_missing`
 */
export function credentialsOf(engine: OpenAiEngineSpec, env: Environment = process.env): Credentials {
  const key = apiKey(engine, env);
  const headers: Record<string, string> = key === null ? {} : { Authorization: `Bearer ${key}` };
  const secrets = key === null ? [] : [key];
  for (const [name, template] of Object.entries(engine.headers)) {
    headers[name] = template.replaceAll(VARIABLE, (_all, variable: string) => {
      const value = env[variable];
      if (value === undefined || value === '') throw missing(`header ${name}`, variable, 'header_variable_missing');
      secrets.push(usable(value.trim(), `the environment variable ${variable}`));
      return value.trim();
    });
  }
  return { headers, secrets };
}

/** The text with every secret replaced: servers and proxies quote what they were sent. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((clean, secret) => clean.replaceAll(secret, '[redacted]'), text);
}

function apiKey({ apiKeyEnv, apiKeyFile }: OpenAiEngineSpec, env: Environment): string | null {
  if (apiKeyEnv !== null) {
    const value = env[apiKeyEnv]?.trim();
    if (!value) throw missing('the API key', apiKeyEnv, 'api_key_missing');
    return usable(value, `the environment variable ${apiKeyEnv}`);
  }
  if (apiKeyFile === null) return null;
  const value = readKeyFile(apiKeyFile);
  if (value === '') throw unusable(`the API key file ${apiKeyFile} is empty`);
  return usable(value, `the file ${apiKeyFile}`);
}

function readKeyFile(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw new ConfigError('api_key_missing', `the API key file cannot be read: ${messageOf(error)}`, {
      advice: 'Give the path of a file that holds nothing but the key, readable by you alone.',
      cause: error,
    });
  }
}

function usable(value: string, from: string): string {
  if (HEADER_VALUE.test(value)) return value;
  throw unusable(`${from} holds characters that no HTTP header can carry`);
}

const unusable = (message: string): ConfigError =>
  new ConfigError('api_key_unusable', message, { advice: 'The key must be one line of plain characters.' });

const missing = (what: string, variable: string, code: string): ConfigError =>
  new ConfigError(code, `${what} is taken from the environment variable ${variable}, which is not set`, {
    advice: `Set it first (export ${variable}=...). Its value is never written down.`,
  });
