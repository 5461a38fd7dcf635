// Names of arms, loads, launches and cells, as they appear in folders and tables.

/** Characters that are safe in a folder name; `__` is reserved as the separator. */
export const ID_PATTERN = /^(?!.*__)[a-z0-9][a-z0-9_-]{0,39}$/;

export interface LaunchKey {
  readonly arm: string;
  readonly repeat: number;
}

export interface CellKey extends LaunchKey {
  readonly load: string;
  readonly attempt: number;
}

export const launchId = (key: LaunchKey): string => `${key.arm}__r${key.repeat}`;
export const cellId = (key: CellKey): string => `${key.arm}__${key.load}__r${key.repeat}__a${key.attempt}`;
