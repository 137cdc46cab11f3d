import fs from 'node:fs'
import path from 'node:path'

/**
 * Makes a folder and those above it, as far as they are missing. Node's own recursive mkdir goes round for ever where a
 * folder that exists answers that it does not, as those of /proc do.
 */
export function makeFolder(folder: string): void {
  if (fs.existsSync(folder)) return
  makeFolder(path.dirname(folder))
  try {
    fs.mkdirSync(folder)
  } catch (error) {
    // Another process may have been faster.
    if (!fs.existsSync(folder)) throw error
  }
}
