import fs from 'node:fs'
import path from 'node:path'
import { watchEdges } from './edges.ts'

/**
 * What a process leaves that is killed at a moment: the files as they are, and no lock. So a command that runs in this process
 * leaves its deaths to be looked at while it lives on.
 */
export interface Death {
  /** `behind COMMIT, no. 7`. */
  place: string
  /** The statement or the call, and which of those with this text. */
  what: string
  nth: number
  /** What `mark` returned then. */
  mark: number
  /** Writes the files into a folder that has none of them. */
  leaveIn(folder: string): void
}

/**
 * Runs a task that works on the files of this folder, and returns each of its deaths: behind every statement and every call that
 * leaves other files than those before, since a death that leaves the same files is the same one.
 */
export async function deathsIn<T>(
  folder: string,
  task: () => T | Promise<T>,
  mark: () => number = () => 0,
): Promise<{ result: T; deaths: Death[] }> {
  const camera = createCamera(folder)
  const deaths: Death[] = []
  let last = camera.look()
  const counts = new Map<string, number>()
  const end = watchEdges({
    after({ what, file, changesFiles }) {
      if (!file.startsWith(folder)) return
      const nth = (counts.get(what) ?? 0) + 1
      counts.set(what, nth)
      if (!changesFiles) return
      const files = camera.look()
      if (isSame(files, last)) return
      last = files
      deaths.push({
        place: `behind ${what.replaceAll(folder, '').slice(0, 80)}, no. ${nth}`,
        what,
        nth,
        mark: mark(),
        leaveIn: (other) => leave(files, other),
      })
    },
  })
  try {
    return { result: await task(), deaths }
  } finally {
    end()
    camera.close()
  }
}

type Files = ReadonlyMap<string, Buffer | null>

/**
 * Reads all files of a folder. It closes none before the end: this process would lose the locks that SQLite has on them. What is
 * shared between processes (`-shm`) is nothing without them.
 */
function createCamera(folder: string) {
  const handles = new Map<number, number>()

  function contentOf(file: string): Buffer {
    const { ino, size } = fs.lstatSync(file)
    const handle = handles.get(ino) ?? fs.openSync(file, 'r')
    handles.set(ino, handle)
    const content = Buffer.alloc(size)
    fs.readSync(handle, content, 0, size, 0)
    return content
  }

  return {
    look(): Files {
      const entries = fs.readdirSync(folder, { recursive: true, withFileTypes: true })
      return new Map(
        entries
          .filter(({ name }) => !name.endsWith('-shm'))
          .map((entry) => {
            const file = path.join(entry.parentPath, entry.name)
            return [path.relative(folder, file), entry.isFile() ? contentOf(file) : null]
          }),
      )
    },
    close() {
      for (const handle of handles.values()) fs.closeSync(handle)
    },
  }
}

function isSame(one: Files, other: Files): boolean {
  if (one.size !== other.size) return false
  return [...one].every(([name, content]) => {
    const before = other.get(name)
    return content && before ? content.equals(before) : content === before
  })
}

function leave(files: Files, folder: string): void {
  for (const [name, content] of files) {
    const file = path.join(folder, name)
    if (content) fs.writeFileSync(file, content)
    else fs.mkdirSync(file, { recursive: true })
  }
}
