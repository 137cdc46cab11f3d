import { describe, expect, it } from 'vitest'
import { items, pageOf, serve } from './list-server.ts'
import { createWorkspace, organization } from './workspace.ts'

describe.concurrent('a setting that has no effect yet', () => {
  it.each<[string, object, string[]]>([
    ['is warned about only if it is set', {}, []],
    ['is named in a warning', { publish: 'published.db' }, ['publish,']],
    ['is named by its section, if it is one,', { http: { port: 1 } }, ['http,']],
  ])('%s at the start of a sync', async (_title, settings, expected) => {
    const server = await serve((asked) => pageOf(items(2), asked))
    const organizations = [organization('acme', 1)]
    const collections = { establishments: false, orders: { history: '90d' } }
    const workspace = createWorkspace({ baseUrl: server.url, organizations, collections, ...settings })

    const { code, logs } = await workspace.run(['sync'])

    expect(code).toBe(0)
    const warnings = logs.filter(({ level }) => level === 'warn').map(({ msg }) => msg)
    expect(warnings).toEqual(expected.map((part) => expect.stringContaining(part)))
  })
})
