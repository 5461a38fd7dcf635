// Which address does a host name mean? Resolved once before the load and pinned, so that no name look-up and no
// fallback from IPv6 to IPv4 ever sits inside a measured time.

import { lookup } from 'node:dns/promises';
import { type EngineEndpoint, EngineError, EnvironmentError, messageOf } from '../core/index.ts';
import { openSocket, type Target } from './connection.ts';
import { isClientSide } from './errno.ts';

const TRY_MS = 5000;

/**
 * The first address of the endpoint's host that accepts a connection.
 * @throws EngineError `unreachable` when none does, EnvironmentError `client_sockets` when this machine alone is at fault:
 * a machine without IPv6 fails at one address of `localhost`, and the server at the other.
 */
export async function pinAddress(endpoint: EngineEndpoint): Promise<Target> {
  const host = endpoint.host.replace(/^\[(.*)\]$/, '$1');
  const failures: string[] = [];
  let clientSide = true;
  try {
    for (const { address } of await lookup(host, { all: true })) {
      const target = { address, port: endpoint.port, ...(endpoint.tls ? { tls: { ...endpoint.tls, host } } : {}) };
      const failure = await tryConnect(target);
      if (failure === null) return target;
      failures.push(`${address}: ${messageOf(failure)}`);
      clientSide &&= isClientSide(failure);
    }
  } catch (error) {
    failures.push(messageOf(error));
  }
  const message = `no connection to ${endpoint.host}:${endpoint.port} (${failures.join('; ')})`;
  if (clientSide) {
    throw new EnvironmentError('client_sockets', message, {
      advice: 'Check the host name, the limit of open files (`ulimit -n`) and the free local ports of this machine.',
    });
  }
  throw new EngineError('unreachable', message, { advice: 'Check that the server is running and listens there.' });
}

function tryConnect(target: Target): Promise<unknown> {
  return new Promise((resolve) => {
    const { socket, event } = openSocket(target, { timeout: TRY_MS });
    const settle = (failure: unknown) => {
      socket.destroy();
      resolve(failure);
    };
    socket.once(event, () => settle(null));
    socket.once('error', settle);
    socket.once('timeout', () => settle(new Error(`no answer within ${TRY_MS} ms`)));
  });
}
