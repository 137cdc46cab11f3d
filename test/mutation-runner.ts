import { appendFileSync, writeFileSync } from 'node:fs'
import process from 'node:process'
import { TestRunner } from 'vitest'
import { type Hits, NOTICED, REACHED, type Reach, readNoticed, readReached, TRIED } from './mutation-files.ts'

// The source holds all planted defects at once, each behind a switch, so that no module is loaded again for the next one. A first run sees
// which test reaches which defect. A second one repeats each test for each defect that it reaches and that no test has noticed so far.

type Task = Parameters<TestRunner['onBeforeRunTask']>[0]
type Test = Parameters<TestRunner['onAfterRetryTask']>[0]
type Try = Parameters<TestRunner['onBeforeTryTask']>[1]

/** What the switches in the source read and write. */
interface Switches {
  activeMutant?: string | undefined
  currentTestId?: string | undefined
  hitCount?: number | undefined
  hitLimit?: number | undefined
  mutantCoverage?: { static: Hits; perTest: { [test: string]: Hits } }
}

/** Where the source looks for them. */
const NAME = '__stryker__'
const switches: Switches = {}
Object.assign(globalThis, { [NAME]: switches })

/** A loop that passes its defect so many times more often than usual is ended by an error. */
const MORE = 100

/** A try takes its hooks' and the test's own time at most, unless it is stuck in a loop that no timer ends. */
const HANGS_AFTER_MS = 60_000

/** What all tries of a defect may take that no test notices. The fastest tests come first: later ones mostly pass the same again, in a larger scene. */
const LONGEST_OF_DEFECT_MS = 60_000

// biome-ignore lint/style/noDefaultExport: vitest takes the runner from the default export
export default class MutationRunner extends TestRunner {
  private readonly isFirst = process.env.MUTATION_RUN === 'reach'
  private readonly reached = new Map(this.isFirst ? [] : readReached().map((one) => [one.id, one]))
  private readonly tests = testsOfDefects([...this.reached.values()])
  private readonly noticed = readNoticed()
  private planned: string[] = []
  private failed: string[] = []
  private passedLast = false

  override async onBeforeRunTask(test: Task): Promise<void> {
    await super.onBeforeRunTask(test)
    if (this.isFirst || test.type !== 'test' || test.mode !== 'run') return
    const { hits = {} } = this.reached.get(test.id) ?? {}
    this.planned = Object.keys(hits).filter((defect) => {
      return this.tests.get(defect)?.has(test.id) === true && !this.noticed.has(defect)
    })
    this.failed = []
    // The last try is one without a defect.
    if (this.planned.length === 0) test.mode = 'skip'
    else test.repeats = this.planned.length
  }

  override onBeforeTryTask(test: Task, options: Try): void {
    const defect = this.planned[options.repeats ?? 0]
    if (this.isFirst) switches.currentTestId = test.id
    if (defect !== undefined) {
      const { ms = 0, hits = {} } = this.reached.get(test.id) ?? {}
      writeFileSync(TRIED, `${defect} ${HANGS_AFTER_MS + 10 * ms}`)
      Object.assign(switches, { activeMutant: defect, hitCount: 0, hitLimit: MORE * (hits[defect] ?? 1) })
    }
    if (test.result !== undefined) delete test.result.errors
    super.onBeforeTryTask(test, options)
  }

  override async onAfterRetryTask(test: Test, options: Try): Promise<void> {
    await super.onAfterRetryTask(test, options)
    Object.assign(switches, { activeMutant: undefined, hitCount: undefined, currentTestId: undefined })
    writeFileSync(TRIED, '')
    this.passedLast = test.result?.state === 'pass'
    const defect = this.planned[options.repeats ?? 0]
    if (defect !== undefined && !this.passedLast && !this.isOnlySlow(test)) this.failed.push(defect)
  }

  override onAfterRunTask(test: Task): void {
    super.onAfterRunTask(test)
    const { id, name: title, result, file } = test
    if (this.isFirst) {
      const hits = switches.mutantCoverage?.perTest[id] ?? {}
      note({ id, file: file.filepath, title, ms: result?.duration ?? 0, passed: this.passedLast, hits })
    } else if (this.passedLast) {
      // Where the last try fails, a defect has left something behind, and the failures say nothing.
      for (const defect of this.failed) this.noticed.add(defect)
      appendFileSync(NOTICED, this.failed.map((defect) => `${defect}\n`).join(''))
    }
    if (result !== undefined) result.state = 'pass'
  }

  override onAfterRunFiles(files: Parameters<TestRunner['onAfterRunFiles']>[0]): void {
    super.onAfterRunFiles(files)
    const hits = switches.mutantCoverage?.static ?? {}
    if (this.isFirst) note({ id: '', file: '', title: null, ms: 0, passed: true, hits })
  }

  /** Whether it ran out of a time that a busy machine may need without a defect, too. */
  private isOnlySlow({ id, result }: Test): boolean {
    const isOutOfTime = result?.errors?.some(({ message }) => message.includes('timed out')) === true
    return isOutOfTime && 10 * (this.reached.get(id)?.ms ?? 0) > this.config.testTimeout
  }
}

/** The tests that try each defect. */
function testsOfDefects(reached: Reach[]): Map<string, Set<string>> {
  const tests = new Map<string, Set<string>>()
  const spentMs: Hits = {}
  for (const { id, ms, hits } of reached
    .filter(({ title, passed }) => title !== null && passed)
    .toSorted((a, b) => a.ms - b.ms)) {
    for (const defect of Object.keys(hits)) {
      const its = tests.get(defect) ?? new Set()
      const spent = (spentMs[defect] ?? 0) + ms
      // The fastest one tries it, however long it takes.
      if (its.size > 0 && spent > LONGEST_OF_DEFECT_MS) continue
      spentMs[defect] = spent
      tests.set(defect, its.add(id))
    }
  }
  return tests
}

function note(reach: Reach): void {
  appendFileSync(REACHED, `${JSON.stringify(reach)}\n`)
}
