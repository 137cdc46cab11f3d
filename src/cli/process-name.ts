import fs from 'node:fs'
import { crc32 } from 'node:zlib'
import { partsOfProcessName } from '../text.ts'

// A process is told from all others, and its death from its life, by its name: `HOST-PID-MARK`. The mark is 12 hexadecimal digits: six of the
// machine since its start and of its numbers of processes, which each container has for itself, and six of the beginning of the process. Its
// number alone is given again, and means nothing on another machine or in another container.

/** A name that no other process has, on any machine. `randomHex` returns 6 hexadecimal digits or more. */
export function processName(host: string, pid: number, randomHex: () => string): string {
  return `${host}-${pid}-${machineMark(host)}${beginOf(pid) ?? randomHex().slice(0, 6)}`
}

/**
 * Tells of processes by their names whether they live; null where nobody here can know, as of one on another machine. `probe` throws for a number
 * that no process has, or only one of another user.
 */
export function createIsAlive(host: string, probe: (pid: number) => void): (name: string) => boolean | null {
  return (name) => {
    const { pid = '', machine, begin } = partsOfProcessName(name) ?? {}
    if (machine !== machineMark(host)) return null
    try {
      probe(Number(pid))
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'EPERM') return false
    }
    const beginsNow = beginOf(Number(pid))
    // Where the system does not say when it began, its number may have been given again.
    return beginsNow === null ? null : beginsNow === begin
  }
}

function machineMark(host: string): string {
  try {
    return digits(
      fs.readFileSync('/proc/sys/kernel/random/boot_id', 'latin1') + fs.readlinkSync('/proc/self/ns/pid'),
    )
  } catch {
    return digits(host)
  }
}

/** When a process began; null where the system does not say. One that has ended, and only its parent has not noticed, never did. */
function beginOf(pid: number): string | null {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name before may hold anything.
    const [state = '', ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return state === 'Z' || state === 'X' ? 'ended' : digits(fields[18] ?? '')
  } catch {
    return null
  }
}

/** Six hexadecimal digits of a text. They keep no secret, and better ones take 10 ms to load, even for `--version`. */
function digits(text: string): string {
  return (crc32(text) >>> 8).toString(16).padStart(6, '0')
}
