import type { HttpGet } from '../../src/api/http.ts'
import type { Store } from '../../src/sync/store.ts'
import type { SimulatedProcess } from './process.ts'

/** A statement on its way to the driver. Of SQLite only the values can be others. */
export interface SqlStatement {
  readonly sql: string
  readonly values: readonly unknown[]
}

/** Parts that the program is put together of, in the place of those that it has: what is wrong with them is the mistake. */
export interface Mistake {
  /** What the program keeps rows in. `now`: the mirror's clock. */
  store?: (store: Store, now: () => number) => Store
  /** What the program sends requests with. */
  exchange?: (exchange: HttpGet) => HttpGet
  /** What the database gets of a statement that a process runs; null: nothing, and the process is told that no row was met. */
  statement?: (statement: SqlStatement, process: SimulatedProcess) => SqlStatement | null
}

/** A mistake that the simulation must find. */
export interface PlantedBug extends Mistake {
  name: string
  /** Of a history that shows it. */
  seed: number
  /** What the oracle says about it: the promise that is broken, and no other one. */
  complaint: RegExp
}
