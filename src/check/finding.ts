import type { z } from 'zod'
import { printable } from '../text.ts'
import type { CheckSchema } from './schema.ts'

/** What one check found. */
export type Finding = z.infer<typeof CheckSchema>['checks'][number]

export function ok(name: string, message: string): Finding {
  return { name, state: 'ok', message, cure: null, exit_code: 0 }
}

export function warn(name: string, message: string, cure: string | null = null): Finding {
  return { name, state: 'warn', message, cure, exit_code: 0 }
}

export function fail(name: string, exitCode: 1 | 2 | 3 | 4, message: string, cure: string | null): Finding {
  return { name, state: 'fail', message, cure, exit_code: exitCode }
}

/** 0, or the first of 4, 2, 3, 1 that a failed check means. */
export function exitCodeOfFindings(findings: readonly Finding[]): number {
  return [4, 2, 3, 1].find((code) => findings.some((finding) => finding.exit_code === code)) ?? 0
}

const LONGEST = 1000

/** One line. */
export function findingLine({ name, state, message, cure }: Finding): string {
  const text = cure === null ? message : `${message}; ${cure}`
  return `${state.padEnd(4)}  ${printable(name, 60).padEnd(24)}  ${printable(text, LONGEST)}`
}
