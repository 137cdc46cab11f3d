import { expect } from 'vitest'
import { sceneTests } from '../helpers/scene.ts'

const it = sceneTests()

it('a list that was read by a clock a year ahead is not fresh, and that is said, until it is read again', async ({
  scene: { workspace },
}) => {
  await workspace.run(['sync'])
  for (const [table, columns] of [
    ['sync_walks', ['started_at', 'updated_at', 'finished_at']],
    ['sync_runs', ['started_at', 'finished_at']],
  ] as const)
    for (const column of columns)
      workspace.change(
        `UPDATE ${table} SET ${column} = strftime('%Y-%m-%dT%H:%M:%fZ', ${column}, '+1 year') WHERE ${column} IS NOT NULL`,
      )
  const asked = async (...options: string[]) => {
    const { code, stdout } = await workspace.run(['status', ...options])
    return { code, stdout }
  }

  expect((await asked()).stdout).not.toContain('never read')
  for (const options of [['--check'], ['--max-age', '2h'], ['--fresh', '2h']])
    expect(await asked(...options)).toEqual({
      code: 1,
      stdout: expect.stringMatching(/a clock that was ahead.*in the future/s),
    })
  expect((await workspace.run(['sync'])).code).toBe(0)
  expect(await asked('--check', '--max-age', '2h')).toMatchObject({ code: 0 })
})
