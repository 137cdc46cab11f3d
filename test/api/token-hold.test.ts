import { expect, it } from 'vitest'
import { createTokenHold, type HoldStore } from '../../src/api/token-hold.ts'
import { TokenRefusedError } from '../../src/errors.ts'
import { createHoldStore } from './helpers/rate.ts'

function refusal(reason: string): TokenRefusedError {
  return new TokenRefusedError(
    `${reason}. Nothing more is sent with it. Put a new token into the configuration, or run "admin-mirror resume" if it is valid again`,
  )
}

/** Two processes on one mirror, whose writes may be others. */
function createHolds(changed: Partial<HoldStore> = {}, reason: string | null = null) {
  const store = createHoldStore(reason)
  const holds = [0, 1].map(() => createTokenHold({ ...store, ...changed }, 'admin-mirror resume'))
  return { store, holds, stopped: () => holds.map(({ check }) => reasonOf(check)) }
}

function reasonOf(check: () => void): string | null {
  try {
    check()
    return null
  } catch (error) {
    return (error as Error).message.split('. ', 1)[0] ?? ''
  }
}

it('after a 401 nothing is sent, by any process, until resume; nor after the next one', async () => {
  const { store, holds, stopped } = createHolds()
  expect(stopped()).toEqual([null, null])

  for (const reason of ['a 401', 'another 401']) {
    await holds[0]?.refused(reason)
    expect(stopped()).toEqual([reason, reason])
    expect(holds[1]?.check).toThrow(refusal(reason))
    store.lift()
    expect(stopped()).toEqual([null, null])
  }
})

it('nothing is sent after a 401 that an earlier run met, until resume', () => {
  const { store, stopped } = createHolds({}, 'an old 401')

  expect(stopped()).toEqual(['an old 401', 'an old 401'])
  store.lift()
  expect(stopped()).toEqual([null, null])
})

it('nothing is sent while a hold is still being written, or if it cannot be', async () => {
  const { promise, reject } = Promise.withResolvers<void>()
  const { holds, stopped } = createHolds({ hold: () => promise })

  const refused = holds[0]?.refused('a 401')
  expect(stopped()).toEqual(['a 401', null])
  reject(new Error('the disk is full'))
  await expect(refused).rejects.toThrow('the disk is full')

  expect(stopped()).toEqual(['a 401', null])
})
