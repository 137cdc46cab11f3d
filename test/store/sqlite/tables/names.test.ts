import { expect, it } from 'vitest'
import { NAME_ENDS } from '../../../../src/store/core/names.ts'
import { errorOf, SMALLEST } from '../../../config/config-files.ts'
import { jobOf } from '../../../helpers/jobs.ts'
import { beginTestWalk, openTestMirror } from '../../../helpers/test-mirror.ts'

it('no collection can have the name of anything that the mirror creates', async () => {
  const test = openTestMirror()
  const { saveItems } = await beginTestWalk(test, jobOf())
  await saveItems('{"id":1,"lines":[{"sku":"a"}]}')
  const made = test.rows('SELECT name FROM sqlite_schema').map(({ name }) => String(name))

  const names = made.filter((name) => name !== 'orders')

  expect(names).toEqual(expect.arrayContaining(['sync_runs', 'orders_history_by_key', 'orders__lines']))
  for (const name of names) {
    const { problems } = errorOf(`${SMALLEST}collections:\n  ${name}: {}\n`, { nameEnds: NAME_ENDS })
    expect(problems.map(({ key }) => key)).toEqual([`collections.${name}`])
  }
})
