import fs from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import { listen } from '../../helpers/loopback.ts'
import { stop } from '../../helpers/processes.ts'
import { createWorkspace } from '../../helpers/workspace.ts'

// sandbox and demo: what is there before anybody has credentials. What the sandbox answers: test/sandbox/api.test.ts.

it('sandbox says first where it listens and for whom, in JSON, serves that, and ends with 0; its configuration replaces an earlier one', async () => {
  const workspace = createWorkspace()
  for (const orders of [20, 30]) {
    const args = ['--organizations', '3', '--orders', String(orders), '--write-config', 'sandbox.yaml']
    const sandbox = workspace.start(['sandbox', ...args])
    const { url, organizations } = JSON.parse(await sandbox.firstLine())
    const [{ id, token }] = organizations
    const headers = { authorization: `Bearer ${token}`, 'x-service-organization': id }
    const answer = await fetch(`${url}/api/v1/admin/orders`, { headers })
    const ended = await stop(sandbox)

    expect(await answer.json()).toMatchObject({ meta: { total: orders } })
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    const one = { id: expect.any(String), name: expect.any(String), token: expect.any(String) }
    expect(organizations).toEqual([one, one, one])
    expect(ended).toMatchObject({ code: 0, signal: null })
    expect(ended.stdout.trimEnd().split('\n')).toHaveLength(1)
    const written = workspace.file('sandbox.yaml')
    expect(parse(fs.readFileSync(written, 'utf8'))).toMatchObject({ api: { baseUrl: url }, organizations })
    expect(fs.statSync(written).mode & 0o777).toBe(0o600)
  }
})

it('sandbox exits with 2 when its port is in use, and writes over no configuration of somebody else', async () => {
  const port = await listen(createServer())
  const workspace = createWorkspace()
  fs.writeFileSync(workspace.file('own.yaml'), 'mine')

  for (const [args, why] of [
    [['--port', String(port)], new RegExp(`--port ${port}`)],
    [['--write-config', 'own.yaml'], /--write-config .*own\.yaml .*not written by the sandbox/],
  ] as const) {
    const stderr = expect.stringMatching(why)
    expect(await workspace.run(['sandbox', ...args])).toMatchObject({ code: 2, stdout: '', stderr })
  }
  expect(fs.readFileSync(workspace.file('own.yaml'), 'utf8')).toBe('mine')
})

it('demo goes the whole way: a sync, an order that comes, a refresh, what changed, and what to do next', async () => {
  const { code, stdout } = await createWorkspace().run(['demo'])

  expect(code).toBe(0)
  for (const step of [
    /\$ admin-mirror sync\n/,
    /acme +delivered +\d+ +\d+/,
    /\$ admin-mirror sync --refresh --org acme/,
    /added +\d+ +ORD-001001 +[\d.]+ +\d{4}-/,
    /acme orders +1,001 rows +read/,
    /cp \S+admin-mirror\.example\.yaml config\/admin-mirror\.yaml/,
  ])
    expect(stdout).toMatch(step)
  const [, mirror = ''] = /sqlite3 (\S+)/.exec(stdout) ?? []
  onTestFinished(() => fs.rmSync(path.dirname(mirror), { recursive: true }))
  const connection = new Database(mirror, { readonly: true })
  expect(connection.prepare('SELECT count(*) FROM orders').pluck().get()).toBe(2001)
  connection.close()
})
