// The UTC time in a form that sorts and fits a folder name.

export const utcStamp = (at: Date = new Date()): string =>
  at.toISOString().replaceAll(/[-:]/g, '').replace(/\.\d+/, '');
