import fs from 'node:fs'
import path from 'node:path'

/** As many links as Linux follows; those that lead in a circle end. */
const MOST_LINKS = 40

/** The path without links, also of a file that is not there yet: the log of a mirror comes and goes with its readers. */
export function realPath(file: string, links = 0): string {
  try {
    return fs.realpathSync(file)
  } catch {
    const folder = path.dirname(file)
    if (folder === file || links > MOST_LINKS) return file
    const target = linkTarget(file)
    if (target !== null) return realPath(path.resolve(folder, target), links + 1)
    return path.join(realPath(folder, links), path.basename(file))
  }
}

function linkTarget(file: string): string | null {
  try {
    return fs.readlinkSync(file)
  } catch {
    return null
  }
}
