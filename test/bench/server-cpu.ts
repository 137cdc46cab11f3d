import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'

/** The processor time of a server on this machine, of the processes that have ended too, in ms. Linux alone tells it. */
export function cpuOfServer(dataFolder: string): number {
  const main = Number(fs.readFileSync(path.join(dataFolder, 'postmaster.pid'), 'utf8').split('\n')[0])
  const stats = fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => statOf(Number(pid)) ?? [])
  return stats
    .filter(({ pid, parent }) => pid === main || parent === main)
    .reduce((sum, { ticks }) => sum + (ticks * 1000) / TICKS_A_SECOND, 0)
}

const TICKS_A_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

function statOf(pid: number): { pid: number; parent: number; ticks: number } | null {
  try {
    const text = fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name before may hold spaces. Then: state, parent, ...; its own two times, and those of its children that ended.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    return { pid, parent: Number(fields[1]), ticks }
  } catch {
    // It has ended meanwhile.
    return null
  }
}
