import path from 'node:path'
import { expect, it } from 'vitest'
import { tempFolder } from '../helpers/temp-folder.ts'
import { gotLoop, httpLoop, upsertLoop } from './bare-loops.ts'
import { createMirror } from './mirrors.ts'
import { whileServing } from './serving.ts'

it.each([false, true])('bare loops read the whole list, each page once (gzip: %s)', async (gzip) => {
  const { asked, read, askedSince } = await whileServing({ orders: 30, gzip }, async ({ list, arrivals }) => {
    const pages = { list, orders: 30 }
    const measured = await Promise.all([
      gotLoop(pages),
      httpLoop(pages),
      upsertLoop(pages, path.join(tempFolder(), 'naive.db')),
    ])
    return {
      read: measured.map(({ stdout }) => stdout),
      asked: await arrivals(),
      askedSince: await arrivals(),
    }
  })

  expect(read).toEqual(['30\n', '30\n', '30\n'])
  expect(asked).toHaveLength(6)
  expect(askedSince).toEqual([])
  expect(asked).toEqual(asked.toSorted((one, other) => one - other))
})

it('a contender that does not come to the end is no contender', async () => {
  const folder = tempFolder()

  const attempts = whileServing({ orders: 30 }, async ({ url, list }) => {
    const naive = path.join(folder, 'naive.db')
    return Promise.allSettled([
      gotLoop({ list, orders: 31 }),
      httpLoop({ list, orders: 31 }),
      upsertLoop({ list, orders: 31 }, naive),
      createMirror({ folder, url }).sync(31),
    ])
  })

  const reasons = (await attempts).map((attempt) => attempt.status === 'rejected' && String(attempt.reason))
  expect(reasons).toEqual([
    'Error: a bare loop read 30 orders instead of 31',
    'Error: a bare loop read 30 orders instead of 31',
    'Error: a bare loop read 30 orders instead of 31',
    'Error: the mirror holds 30 orders instead of 31',
  ])
})
