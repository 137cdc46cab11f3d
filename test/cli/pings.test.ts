import fs from 'node:fs'
import { expect, it } from 'vitest'
import { serve } from '../helpers/list-server.ts'
import { OUTSIDE_READERS } from '../helpers/outside-readers.ts'
import { stop } from '../helpers/processes.ts'
import { ACME, createScene, GLOBEX } from '../helpers/scene.ts'

// Pings of real commands. When one is sent, and what it says: test/ping; what an address may be: test/config.

const SECRET = 'a1b2c3d4-known-to-nobody-else'
const [START, SUCCESS, FAIL] = [`/${SECRET}/start`, `/${SECRET}`, `/${SECRET}/fail`]

/** Two lists, and a dead-man switch. */
async function createWatched() {
  const watch = await serve(() => ({}))
  const settings = { organizations: [ACME, GLOBEX], ping: `${watch.url}/${SECRET}`, schedule: '0 0 1 1 *' }
  const scene = await createScene({ settings })
  return { ...scene, ...scene.workspace, watch, paths: () => watch.asked.map(({ path }) => path) }
}

it('pings tell of a sync that begins, and of the verdict at its end, without a token, an item or what a server said; not of a verify', async () => {
  const { run, api, watch, paths } = await createWatched()
  const { code, stderr } = await run(['sync'])
  await run(['verify'])
  const refusal = { status: 401, body: { message: 'Mr Item was here' } }
  api.instead = ({ organization }) => (organization === GLOBEX.id ? refusal : null)
  const failed = await run(['sync'])

  expect([code, failed.code, paths()]).toEqual([0, 3, [START, SUCCESS, START, FAIL]])
  expect(watch.asked[1]?.body).toMatch(/^2 of 2 lists are well/)
  expect(watch.asked[3]?.body).toMatch(
    /^1 of 2 lists need attention.*\nglobex orders: token refused since .*: UNAUTHORIZED \(.*token/,
  )
  expect(new Set(watch.asked.map(({ method }) => method))).toEqual(new Set(['POST']))
  expect(JSON.stringify(watch.asked)).not.toMatch(/Secret-of|authorization|Bearer|"open"|"paid"|Mr Item/i)
  // The address is a secret of its own.
  expect(stderr).not.toContain(SECRET)
})

it.for(OUTSIDE_READERS)(
  'pings of a start tell of its scheduled runs, and leave it its locks: $name takes no log away from it',
  async (reader) => {
    const { start, mirror, watch, paths } = await createWatched()
    const daemon = start(['start'])
    await watch.arrival(({ path }) => path === SUCCESS)

    expect(reader.read(mirror, 'SELECT count(*) AS rows FROM orders')).toEqual([{ rows: 8 }])

    expect(fs.existsSync(`${mirror}-wal`)).toBe(true)
    expect((await stop(daemon)).code).toBe(0)
    expect(paths()).toEqual([START, SUCCESS])
  },
)
