// Where a server that is already running answers: its base URL taken apart into an endpoint and the paths below it.

export interface ServerUrl {
  readonly secure: boolean;
  /** Without the brackets of an IPv6 address. */
  readonly host: string;
  readonly port: number;
  /** Path in front of `/v1`, `/health` and `/metrics`: empty, or `/base`. */
  readonly root: string;
  /** Path in front of `/completions` and `/models`: `root` and the version, usually `/v1`. */
  readonly api: string;
}

/**
 * Reads `http[s]://host[:port][/base][/v1]`.
 * @returns a sentence when the text is no such URL; a URL with a password or a query is none.
 */
export function parseServerUrl(text: string): ServerUrl | string {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return 'not a URL: expected http://host:port or https://host/base';
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return 'expected a URL that begins with http:// or https://';
  if (url.username !== '' || url.password !== '') return 'a URL must not carry a user name or password';
  if (url.search !== '' || url.hash !== '') return 'a URL must not carry a query or a fragment';
  const secure = url.protocol === 'https:';
  const path = url.pathname.replace(/\/+$/, '');
  const version = /\/v\d+$/.exec(path)?.[0] ?? null;
  return {
    secure,
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    root: version === null ? path : path.slice(0, -version.length),
    api: version === null ? `${path}/v1` : path,
  };
}
