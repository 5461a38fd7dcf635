// The simulated GPU's line protocol over its Unix socket, spoken by sim/, gpu/simulated and the C stub of libnvidia-ml.
//
// A request is one line `verb key=value key=value\n`; the reply is one line `ok key=value ...\n` or
// `err code=<NVML return code> message=<text to the end of the line>\n`. Values hold no spaces (percent-encode them).
// Replies come in the order of the requests. Times are absolute CLOCK_MONOTONIC ns as decimal text.
//
// verb          arguments                     reply
// info          -                             uuid name serial driver pci default_mw min_mw max_mw f_max f_min f_step mem_mhz
//                                             tick_ms mem_total_bytes f_bw_knee (static facts; clocks in MHz)
// read          -                             at_ns energy_mj power_instant_mw power_average_mw sm_mhz mem_mhz temp_c reasons
//                                             util_pct enforced_mw limit_mw mem_used_bytes app_sm_mhz app_mem_mhz boost_max_mhz
//                                             persistence (0 or 1) power_violation_ns (time held down by the power limit)
// energy        -                             energy_mj (the counter alone: the cheap, often-polled call)
// lock          min_mhz max_mhz               target_mhz (snapped); persists when the client goes away
// reset_lock    -                             -
// set_limit     mw                            - ; code 2 outside [min_mw, max_mw]
// processes     -                             pids=<pid>:<bytes>,<pid>:<bytes>
// attach        pid mem_bytes                 - ; a process holds a context until it detaches or its connection closes
// detach        pid                           -
// load          activity mem_util             sm_mhz (the clock at which this phase runs, after lock, cap and heat)
//               The engine's current phase: METHOD 6.4's a and u. activity=0 mem_util=0 is idle. Belongs to the connection.
// ecc           -                             uncorrected (memory errors beyond repair since the start)
// events        [after]                       last faults=xid:<number>,double_bit_ecc:0 (driver faults after the one numbered
//                                             `after`; without it none, only the number of the last)
// integral      from_ns to_ns                 energy_mj (exact, a double), for tests
// state         -                             locked_min_mhz locked_max_mhz limit_mw (0 0 when unlocked)
// fault         name ...                      - ; see sim/faults.ts
// shutdown      -                             - ; the process exits

export type SimFields = Readonly<Record<string, string>>;

export function encodeSimLine(verb: string, fields: Record<string, string | number | bigint> = {}): string {
  const parts = Object.entries(fields).map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`);
  return `${[verb, ...parts].join(' ')}\n`;
}

/** Splits a line (without its newline) into its first word and its fields. */
export function decodeSimLine(line: string): { verb: string; fields: SimFields } {
  const [verb = '', ...parts] = line.trim().split(' ');
  const fields: Record<string, string> = {};
  for (const part of parts) {
    const at = part.indexOf('=');
    if (at > 0) fields[part.slice(0, at)] = decodeURIComponent(part.slice(at + 1));
  }
  return { verb, fields };
}
