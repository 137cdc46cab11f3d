import { createHash } from 'node:crypto'
import fs from 'node:fs'

// A process is told from others, and its death from its life, by 12 hexadecimal digits: six of its machine, six of its beginning. Its number
// alone is given again, and means nothing on another machine or in another container.

const LENGTH = 6

function digits(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, LENGTH)
}

/** This machine since its start, and its numbers of processes. Throws where the system does not say. */
function machineMark(): string {
  return digits(
    fs.readFileSync('/proc/sys/kernel/random/boot_id', 'latin1') + fs.readlinkSync('/proc/self/ns/pid'),
  )
}

/** When a process began; null: there is none, or it has ended and only its parent has not noticed. */
function beginMark(pid: number): string | null {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name before may hold anything.
    const [state = '', ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return state === 'Z' || state === 'X' ? null : digits(fields[18] ?? '')
  } catch {
    return null
  }
}

/** The mark of this process; null where the system does not say enough. */
export function ownMark(pid: number): string | null {
  try {
    return machineMark() + (beginMark(pid) ?? '')
  } catch {
    return null
  }
}

/** Whether the process with this number and this mark has ended. False where nobody can know, as on another machine. */
export function hasEnded(pid: number, mark: string): boolean {
  try {
    return mark.startsWith(machineMark()) && mark.slice(LENGTH) !== beginMark(pid)
  } catch {
    return false
  }
}
