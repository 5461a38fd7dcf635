// Which port an engine gets: a free one of our choice, or a fixed one that must be free before anything starts.

import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { EnvironmentError, messageOf } from '../core/index.ts';
import { commandLineOf, livingProcesses } from './proc.ts';

/** Below the range from which systems take the ports of outgoing connections, so that none of ours can steal it. */
const PICK_FROM = 18_000;
const PICK_BELOW = 32_000;
const TRIES = 50;

/** Binds and listens for a moment. Resolves with the error code, or null when the port is free. */
function tryListen(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
}

/** Inodes of the sockets that listen on this TCP port, from the kernel's table. */
function listeningInodes(port: number): Set<string> {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const inodes = new Set<string>();
  for (const file of ['/proc/net/tcp', '/proc/net/tcp6']) {
    let text = '';
    try {
      text = readFileSync(file, 'utf8');
    } catch {
      continue;
    }
    for (const line of text.split('\n').slice(1)) {
      const fields = line.trim().split(/\s+/);
      if (fields[1]?.endsWith(`:${hex}`) && fields[3] === '0A') inodes.add(fields[9]!);
    }
  }
  return inodes;
}

function holdsSocket(pid: number, inodes: ReadonlySet<string>): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
      return target.startsWith('socket:[') && inodes.has(target.slice(8, -1));
    });
  } catch {
    return false;
  }
}

/** `pid 123 (python server.py)` of the process that listens on a port; null when /proc does not tell. */
export function listenerOn(port: number): string | null {
  const inodes = listeningInodes(port);
  if (inodes.size === 0) return null;
  const pid = livingProcesses()?.find((entry) => holdsSocket(entry.pid, inodes))?.pid;
  if (pid === undefined) return null;
  const command = commandLineOf(pid);
  return command === null ? `pid ${pid}` : `pid ${pid} (${command.slice(0, 120)})`;
}

async function pickPort(host: string): Promise<number> {
  let last: string | null = null;
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const port = randomInt(PICK_FROM, PICK_BELOW);
    last = await tryListen(host, port);
    if (last === null) return port;
    if (last !== 'EADDRINUSE' && last !== 'EACCES') break;
  }
  throw new EnvironmentError('no_free_port', `no port could be opened on ${host}: ${last}`, {
    advice: 'Check engine.host in the config: it must be an address of this machine, such as 127.0.0.1.',
  });
}

/**
 * The port that the engine will be told to open: `port`, checked to be free, or a free one when `port` is 0.
 * Checked before the start because a server finds out only after ten seconds of imports.
 * @throws EnvironmentError `port_in_use` (it names who listens), `port_unusable`, `no_free_port`
 */
export async function claimPort(host: string, port: number): Promise<number> {
  if (port === 0) return pickPort(host);
  const refusal = await tryListen(host, port);
  if (refusal === null) return port;
  if (refusal !== 'EADDRINUSE') {
    throw new EnvironmentError('port_unusable', `port ${port} cannot be opened on ${host}: ${messageOf(refusal)}`, {
      advice: 'Give engine.host an address of this machine and engine.port a number from 1024 on, or 0 for a free one.',
    });
  }
  const holder = listenerOn(port);
  throw new EnvironmentError('port_in_use', `port ${port} on ${host} is in use${holder ? ` by ${holder}` : ''}`, {
    advice: `Stop that process, or set engine.port to another number (0 picks a free one for every launch).`,
    details: { host, port, holder },
  });
}
