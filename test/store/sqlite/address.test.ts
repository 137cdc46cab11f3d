import { describe, expect, it } from 'vitest'
import { UsageError } from '../../../src/errors.ts'
import { addressOf, claimAddress as claim, placeOfFile } from '../../../src/store/core/settings.ts'
import { runRule } from '../../../src/store/sqlite/driver.ts'
import { jobOf } from '../../helpers/jobs.ts'
import { beginTestWalk, leaseOf, openTestMirror, type TestMirror } from '../../helpers/test-mirror.ts'

describe('the address of an API', () => {
  it.each([
    ['https://admin.example.com', 'admin.example.com'],
    ['http://admin.example.com:8080', 'admin.example.com'],
    ['https://ADMIN.Example.COM/', 'admin.example.com'],
    ['https://admin.example.com.', 'admin.example.com'],
    ['https://admin.example.com/v2/Admin/', 'admin.example.com/v2/Admin'],
    ['https://bücher.example', 'xn--bcher-kva.example'],
    ['https://xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['http://[::1]:9000/api', '[::1]/api'],
    ['http://[0:0:0:0:0:0:0:1]/api', '[::1]/api'],
    ['http://127.1', '127.0.0.1'],
  ])('%s is %s', (baseUrl, address) => {
    expect(addressOf(baseUrl)).toBe(address)
  })
})

function claimAddress({ connection }: TestMirror, baseUrl: string, accept: boolean): string | null {
  return runRule(connection, claim(baseUrl, accept, placeOfFile(connection.name)))
}

describe('a mirror', () => {
  const address = "SELECT value FROM sync_settings WHERE name = 'address'"

  it('can be given any address until its first page is written', async () => {
    const test = openTestMirror()
    claimAddress(test, 'https://admn.example.com', false)
    const { saveItems } = await beginTestWalk(test, jobOf())

    claimAddress(test, 'https://admin.example.com', false)
    await saveItems('{"id":1}')

    expect(() => claimAddress(test, 'https://admin.example.com/v2', false)).toThrow(UsageError)
    expect(test.value(address)).toBe('admin.example.com')
  })

  it('keeps its address while a process has a job, and gives that process no other job once the address has changed', async () => {
    const test = openTestMirror()
    claimAddress(test, 'https://admin.example.com', false)
    const { lease = leaseOf(jobOf()) } = await test.store.acquire(jobOf())

    expect(() => claimAddress(test, 'https://staging.example.com', false)).toThrow(UsageError)
    await test.store.release(lease)
    claimAddress(test, 'https://staging.example.com', false)

    await expect(test.store.acquire(jobOf())).rejects.toThrow(
      /now holds the lists of staging\.example\.com.*started with admin\.example\.com/,
    )
    expect(test.value('SELECT count(*) FROM sync_jobs WHERE owner IS NOT NULL')).toBe(0)
  })

  it('of an earlier version takes the first address', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems('{"id":1}')

    const warning = claimAddress(test, 'https://admin.example.com/v2', false)

    expect(warning).toMatch(
      /did not say yet whose lists it holds; from now on they are those of admin\.example\.com/,
    )
    expect(test.value(address)).toBe('admin.example.com/v2')
  })
})
