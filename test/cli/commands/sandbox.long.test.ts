import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { createWorkspace } from '../../helpers/workspace.ts'

// sandbox and demo: what is there before anybody has credentials.

describe.concurrent('sandbox', () => {
  it('says first where it listens and for whom, in JSON, and ends with 0', async () => {
    const sandbox = createWorkspace().start(['sandbox', '--organizations', '3', '--orders', '30'])
    const { url, organizations } = JSON.parse(await sandbox.firstLine())
    const [first] = organizations
    const headers = {
      accept: 'application/json',
      authorization: `Bearer ${first.token}`,
      'x-service-organization': first.id,
    }

    const answer = await fetch(`${url}/api/v1/admin/orders`, { headers })
    const { meta } = (await answer.json()) as { meta: { total: number } }
    sandbox.kill('SIGTERM')
    const ended = await sandbox.ended

    expect(meta.total).toBe(30)
    expect(organizations).toHaveLength(3)
    for (const one of organizations) {
      expect(one).toEqual({ id: expect.any(String), name: expect.any(String), token: expect.any(String) })
    }
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect(ended).toMatchObject({ code: 0, signal: null })
    expect(ended.stdout.trimEnd().split('\n')).toHaveLength(1)
  })

  it('exits with 2 when its port is in use', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const address = taken.address()
    const port = typeof address === 'object' ? address?.port : 0

    const { code, stdout, stderr } = await createWorkspace().run(['sandbox', '--port', String(port)])
    taken.close()

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(`--port ${port}`)
  })

  it.each(['sandbox.yaml', 'link.yaml'])(
    'writes over no configuration of somebody else: %s',
    async (name) => {
      const workspace = createWorkspace()
      const config = 'api:\n  baseUrl: https://admin.example.test\n'
      fs.writeFileSync(workspace.file('sandbox.yaml'), config)
      fs.symlinkSync('sandbox.yaml', workspace.file('link.yaml'))

      const { code, stdout, stderr } = await workspace.run(['sandbox', '--write-config', name])

      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toMatch(/--write-config .*\.yaml .*not written by the sandbox/)
      expect(fs.readFileSync(workspace.file('sandbox.yaml'), 'utf8')).toBe(config)
    },
  )

  it('writes over a configuration of an earlier sandbox', async () => {
    const workspace = createWorkspace()
    const urls: string[] = []
    for (const orders of ['20', '30']) {
      const sandbox = workspace.start(['sandbox', '--orders', orders, '--write-config', 'sandbox.yaml'])
      urls.push(JSON.parse(await sandbox.firstLine()).url)
      sandbox.kill('SIGTERM')
      await sandbox.ended
    }

    expect(parse(fs.readFileSync(workspace.file('sandbox.yaml'), 'utf8'))).toMatchObject({
      api: { baseUrl: urls[1] },
    })
  })
})

describe('demo', () => {
  it('goes the whole way twice, and leaves the mirror and no process', async () => {
    const workspace = createWorkspace(undefined, 'data/demo/mirror.db')
    const began = Date.now()

    const first = await workspace.run(['demo'])
    const second = await workspace.run(['demo'])

    process.stdout.write(`two demos took ${Date.now() - began} ms\n`)
    for (const { code, stdout } of [first, second]) {
      expect(code).toBe(0)
      expect(stdout).toMatch(/acme orders +1,001 rows +read/)
      expect(stdout).toMatch(/added +\d+ +ORD-001001 +[\d.]+ +\d{4}-/)
      expect(stdout).toContain('sqlite3 data/demo/mirror.db')
    }
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(2001)
    // The processes have ended with their pipes closed; nobody else may have the folder as its own.
    expect(processesIn(workspace.folder)).toEqual([])
  })
})

/** Processes whose working folder it is. */
function processesIn(folder: string): string[] {
  const script = `for pid in /proc/[0-9]*; do [ "$(readlink $pid/cwd)" = "$1" ] && echo $pid; done; true`
  const found = execFileSync('sh', ['-c', script, 'sh', folder], { encoding: 'utf8' })
  return found.split('\n').filter((line) => line !== '')
}
