import { fileURLToPath } from 'node:url'
import { type Measured, type MeasureOptions, measure } from './processes.ts'

const GOT = fileURLToPath(new URL('./bare/got.ts', import.meta.url))
const HTTP = fileURLToPath(new URL('./bare/http.ts', import.meta.url))
const UPSERT = fileURLToPath(new URL('./bare/upsert.ts', import.meta.url))

/** What each bare loop is called in the table. */
export const NAMES = { got: 'got loop', http: 'node:http loop', upsert: 'got loop + naive upsert' }

export interface List {
  /** The address of its first page. */
  list: string
  orders: number
}

export function gotLoop(list: List, options?: MeasureOptions): Promise<Measured> {
  return checked(GOT, [list.list], list, options)
}

export function httpLoop(list: List, options?: MeasureOptions): Promise<Measured> {
  return checked(HTTP, [list.list], list, options)
}

/** `file`: the database, made where there is none. */
export function upsertLoop(list: List, file: string, options?: MeasureOptions): Promise<Measured> {
  return checked(UPSERT, [list.list, file], list, options)
}

/** A loop that reads only a part would win every race. */
async function checked(
  program: string,
  args: string[],
  { orders }: List,
  options?: MeasureOptions,
): Promise<Measured> {
  const measured = await measure([program, ...args], options)
  if (Number(measured.stdout) !== orders)
    throw new Error(`a bare loop read ${measured.stdout.trim()} orders instead of ${orders}`)
  return measured
}
