// Ctrl-C and SIGTERM: the first one asks for a clean end, and decides the exit code.

export interface SignalWatch {
  readonly signal: AbortSignal;
  /** 130 or 143 after a signal, else null. */
  exitCode(): number | null;
  dispose(): void;
}

const CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/** Turns the first SIGINT, SIGTERM or SIGHUP into an abort; later ones change nothing. */
export function watchSignals(onSignal: (name: string) => void): SignalWatch {
  const controller = new AbortController();
  let code: number | null = null;
  const listeners = Object.entries(CODES).map(([name, value]) => {
    const listener = () => {
      if (code !== null) return;
      code = value;
      onSignal(name);
      controller.abort(new Error(`stopped by ${name}`));
    };
    process.on(name, listener);
    return { name, listener };
  });
  return {
    signal: controller.signal,
    exitCode: () => code,
    dispose: () => {
      for (const { name, listener } of listeners) process.off(name, listener);
    },
  };
}
