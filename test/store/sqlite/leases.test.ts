import { onTestFinished } from 'vitest'
import { openForWriting } from '../../../src/store/sqlite/open.ts'
import { runnerOn } from '../../../src/store/sqlite/runner.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'
import { describeLeases } from '../contract-leases.ts'

describeLeases('SQLite', async () => {
  const { file, clock } = openTestMirror()
  return {
    async open() {
      const connection = openForWriting(file)
      onTestFinished(() => void connection.close())
      return runnerOn(connection, { ...clock, signal: new AbortController().signal })
    },
  }
})
