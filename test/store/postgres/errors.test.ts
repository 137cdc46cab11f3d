import { describe, expect, it } from 'vitest'
import { translate } from '../../../src/store/postgres/server/errors.ts'
import { newSchema } from '../../helpers/postgres.ts'

const ADDRESS = newSchema({ url: 'postgres://mirror@127.0.0.1:6432/shop' })

describe('an error of a connection pooler', () => {
  it.each([
    ['08P01', 'unsupported startup parameter: options'],
    ['42P05', 'prepared statement "x" already exists'],
    ['26000', 'prepared statement "x" does not exist'],
  ])('%s says what stands in the way', (code, message) => {
    const error = translate(ADDRESS, Object.assign(new Error(message), { code }))

    expect(error).toMatchObject({
      name: 'MirrorError',
      message: expect.stringMatching(/a connection pooler in front of .* address of the server/) as string,
    })
  })

  it('is another one where the server itself breaks the protocol', () => {
    const error = translate(ADDRESS, Object.assign(new Error('invalid message format'), { code: '08P01' }))

    expect(error).toMatchObject({ message: expect.stringMatching(/cannot be reached \(08P01\)/) as string })
  })
})
