import { translatingErrors } from '../../store/sqlite/file/open.ts'
import {
  mirrorSize,
  readGates,
  readLastRuns,
  readNewColumns,
  readTokensUsed,
} from '../../store/sqlite/read/overview.ts'
import { createReader } from '../../store/sqlite/read/reader.ts'
import type { Connection } from '../../store/sqlite/sql.ts'
import { createFileCheck } from '../../store/sqlite/transaction.ts'
import { unwritableNow } from '../mirror-file.ts'
import type { ServedMirror } from './source.ts'

/** What the listener reads of a mirror in a file: on the connection of the sync, between two of its transactions. */
export function createServedFile(connection: Connection, file: string, processName: string): ServedMirror {
  const reader = createReader(connection, file, processName)
  const assertSameFile = createFileCheck(file)
  return {
    async probe() {
      assertSameFile()
      // Any read shows whether the mirror can be read; what it returns is not needed.
      reader.gateClosedUntil()
    },
    unwritable: () => unwritableNow(file, true),
    overview: async (newSince) =>
      translatingErrors(file, () => ({
        reader,
        runs: readLastRuns(connection),
        gates: readGates(connection),
        tokensUsed: readTokensUsed(connection),
        newColumns: readNewColumns(connection, new Date(newSince).toISOString()),
        size: mirrorSize(file),
      })),
  }
}
