import { worstExitCode } from '../errors.ts'
import { printable } from '../text.ts'

/** What one check found, as `check --json` writes it. */
export interface Finding {
  /** What was checked: mirror, token acme. */
  name: string
  state: 'ok' | 'warn' | 'fail'
  message: string
  /** What to do; null: nothing, or the message says it. */
  cure: string | null
  /** What a run would exit with because of it. */
  exit_code: 0 | 1 | 2 | 3 | 4
}

export function ok(name: string, message: string): Finding {
  return { name, state: 'ok', message, cure: null, exit_code: 0 }
}

export function warn(name: string, message: string, cure: string | null = null): Finding {
  return { name, state: 'warn', message, cure, exit_code: 0 }
}

export function fail(name: string, exitCode: 1 | 2 | 3 | 4, message: string, cure: string | null): Finding {
  return { name, state: 'fail', message, cure, exit_code: exitCode }
}

export function exitCodeOfFindings(findings: readonly Finding[]): number {
  return worstExitCode(findings.map((finding) => finding.exit_code))
}

const LONGEST_FINDING = 1000

/** A finding as one line. */
export function findingLine({ name, state, message, cure }: Finding): string {
  const text = cure === null ? message : `${message}; ${cure}`
  return `${state.padEnd(4)}  ${printable(name, 60).padEnd(24)}  ${printable(text, LONGEST_FINDING)}`
}
