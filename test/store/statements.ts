import type { OpenRun } from './stage.ts'

/** `INSERT orders`; of several in a row that are alike, one. */
function shapesOf(statements: readonly string[]): string[] {
  const shapes = statements.map((sql) => {
    const [verb = ''] = sql.trim().split(/\s/)
    // What is asked for within brackets stands behind the table that is meant.
    const plain = sql.replaceAll(/\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)/g, '()')
    const [, table] =
      /(?:UPDATE|INTO|JOIN|FROM) "?(orders\w*|sync_\w+)/.exec(plain.replaceAll(/\s+/g, ' ')) ?? []
    return table === undefined ? verb : `${verb} ${table}`
  })
  return shapes.filter((shape, index) => shape !== shapes[index - 1])
}

/** What the database is asked for a page of two items: when they are new, when they have changed, and when they have not. */
export async function statementsOf(
  { page }: OpenRun,
  watch: () => () => string[],
): Promise<Record<'added' | 'changed' | 'unchanged', string[]>> {
  const shapes = async (a: number) => {
    const end = watch()
    await page(`{"id":2,"a":${a}}`, `{"id":3,"a":${a}}`)
    return shapesOf(end())
  }
  await page('{"id":1,"a":1}')
  return { added: await shapes(1), changed: await shapes(2), unchanged: await shapes(2) }
}
