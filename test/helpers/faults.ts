import path from 'node:path'
import type { Fault } from './inject-faults.ts'

const MODULE = path.resolve(import.meta.dirname, 'inject-faults.ts')

/** The environment of a process, and of those that it starts, in which this happens. */
export function faultsOf(...faults: Fault[]): { NODE_OPTIONS: string; FAULTS: string } {
  return { NODE_OPTIONS: `--import=${MODULE}`, FAULTS: JSON.stringify(faults) }
}
