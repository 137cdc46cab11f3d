import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { mustRun } from '../../helpers/system.ts'
import { createWorkspace } from '../../helpers/workspace.ts'

// schema, sandbox and demo: what is there before anybody has credentials.

const EXAMPLE = path.resolve(import.meta.dirname, '../../../config/admin-mirror.example.yaml')

describe.concurrent('schema', () => {
  it('prints a JSON Schema that the example file is valid by, and a file with a slip of the pen is not', async () => {
    const { code, stdout, stderr } = await createWorkspace().run(['schema'])

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const schema = z.fromJSONSchema(JSON.parse(stdout, suitZod))
    const example = parse(fs.readFileSync(EXAMPLE, 'utf8')) as object
    expect(schema.safeParse(example).error).toBeUndefined()
    expect(schema.safeParse({ ...example, concurency: 4 }).success).toBe(false)
    expect(schema.safeParse({ ...example, organizations: undefined }).success).toBe(false)
  })
})

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

  it('writes a configuration that uses it, before it says that it listens', async () => {
    const workspace = createWorkspace(undefined, 'sandbox-mirror.db')
    const config = workspace.file('admin-mirror.yaml')
    const sandbox = workspace.start(['sandbox', '--orders', '30', '--write-config', 'admin-mirror.yaml'])
    await sandbox.firstLine()

    expect(fs.existsSync(config)).toBe(true)
    const sync = await workspace.run(['sync', '--collection', 'orders', '--config', config])
    sandbox.kill('SIGINT')

    expect(sync.code).toBe(0)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(60)
    expect((await sandbox.ended).code).toBe(0)
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

  it('exits with 2 where its configuration would be a pipe, which nobody reads', async () => {
    const workspace = createWorkspace()
    mustRun('mkfifo', workspace.file('pipe'))

    const { code, stdout, stderr } = await workspace.run(['sandbox', '--write-config', 'pipe'])

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/--write-config .*pipe is a pipe or a device/)
  })

  it('exits with 2 when its configuration cannot be written', async () => {
    const { code, stdout, stderr } = await createWorkspace().run([
      'sandbox',
      '--write-config',
      '/dev/null/no/where.yaml',
    ])

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/--write-config .*where\.yaml/)
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
      expect(stdout).toMatch(/acme orders +[\d,]+ rows +as of/)
      expect(stdout).toMatch(/ORD-004001 +pending +[\d.]+ +\d{4}-/)
      expect(stdout).toContain('sqlite3 data/demo/mirror.db')
    }
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(8001)
    // The processes have ended with their pipes closed; nobody else may have the folder as its own.
    expect(processesIn(workspace.folder)).toEqual([])
  })
})

/** What JSON Schema means and zod does not: Unicode's classes in patterns, and alternatives that only say what is required. */
function suitZod(key: string, value: unknown): unknown {
  if (key === 'oneOf') return undefined
  return key === 'pattern' ? String(value).replaceAll('\\p{Cc}', '\\x00-\\x1f') : value
}

/** Processes whose working folder it is. */
function processesIn(folder: string): string[] {
  const script = `for pid in /proc/[0-9]*; do [ "$(readlink $pid/cwd)" = "$1" ] && echo $pid; done; true`
  const found = execFileSync('sh', ['-c', script, 'sh', folder], { encoding: 'utf8' })
  return found.split('\n').filter((line) => line !== '')
}
