// Certificates for tests: an authority of our own and a server certificate that it signed, made by openssl on the spot.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TestAuthority {
  /** PEM file of the authority. */
  readonly caFile: string;
  readonly ca: string;
  readonly key: string;
  readonly cert: string;
}

/** A server certificate for the given names (`DNS:..`, `IP:..`) and the authority that signed it. */
export function testAuthority(names = 'DNS:localhost,IP:127.0.0.1'): TestAuthority {
  const folder = mkdtempSync(join(tmpdir(), 'tokbench-tls-'));
  const at = (name: string) => join(folder, name);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...newKey,
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
    '-days',
    '2',
    '-subj',
    '/CN=test authority',
  );
  openssl('req', ...newKey, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=test server');
  writeFileSync(at('names'), `subjectAltName=${names}\n`);
  const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names', '-days', '2'];
  openssl('x509', '-req', '-in', 'server.csr', '-out', 'server.pem', ...signed);
  const read = (name: string) => readFileSync(at(name), 'utf8');
  return { caFile: at('ca.pem'), ca: read('ca.pem'), key: read('server.key'), cert: read('server.pem') };
}
