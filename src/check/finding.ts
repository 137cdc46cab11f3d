import { printable } from '../text.ts'

/** What `check` found of one thing. */
export interface Finding {
  /** What was checked: database, token acme, acme orders. */
  name: string
  state: 'ok' | 'warn' | 'fail'
  message: string
  /** What to do; null: nothing, or the message says it. */
  cure: string | null
  /** What a run would exit with because of it. */
  exitCode: 0 | 1 | 2 | 3 | 4
}

export function ok(name: string, message: string): Finding {
  return { name, state: 'ok', message, cure: null, exitCode: 0 }
}

export function warn(name: string, message: string, cure: string | null = null): Finding {
  return { name, state: 'warn', message, cure, exitCode: 0 }
}

export function fail(
  name: string,
  exitCode: 1 | 2 | 3 | 4,
  message: string,
  cure: string | null = null,
): Finding {
  return { name, state: 'fail', message, cure, exitCode }
}

/** A finding as one line. */
export function findingLine({ name, state, message, cure }: Finding): string {
  const text = cure === null ? message : `${message}; ${cure}`
  return `${state.padEnd(4)}  ${printable(name, 60).padEnd(24)}  ${printable(text, 1000)}`
}

/** One cause is told once: of lists that failed alike, the first stands for all. */
export function toldOnce(
  findings: readonly Finding[],
  name: (names: readonly string[]) => string,
): Finding[] {
  const alike = Map.groupBy(findings, ({ state, name: own, message }) =>
    state === 'ok' ? own : `${state} ${message}`,
  )
  return Array.from(alike.values(), (group) => ({
    ...(group[0] as Finding),
    name: name(group.map((one) => one.name)),
  }))
}
