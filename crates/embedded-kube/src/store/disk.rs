//! The store in a folder: one redb file. Main type: [`Disk`]. An acknowledged commit survives `kill
//! -9`.

use super::{Loaded, Store, StoreError, Write};
use bytes::Bytes;
use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition,
};
use std::path::{Path, PathBuf};

const FORMAT: u32 = 1;
const FILE: &str = "objects.redb";
const OBJECTS: TableDefinition<&str, &[u8]> = TableDefinition::new("objects");
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");

/// Creates the folder, if it is missing, with access for its owner only.
fn private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A redb database in a data folder.
pub struct Disk {
    folder: PathBuf,
    database: Database,
}

impl Disk {
    /// Opens or creates the folder. The format number is checked before anything is written.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let io = |reason: String| StoreError::Io {
            folder: folder.to_owned(),
            reason,
        };
        // It holds Secrets.
        private_folder(folder).map_err(|e| io(e.to_string()))?;
        let format_file = folder.join("format");
        match std::fs::read_to_string(&format_file) {
            Ok(text) => match text.trim().parse::<u32>() {
                Ok(found) if found > FORMAT => {
                    return Err(StoreError::Newer {
                        folder: folder.to_owned(),
                        found,
                        known: FORMAT,
                    });
                }
                Ok(_) => {}
                Err(_) => {
                    return Err(StoreError::Damaged {
                        folder: folder.to_owned(),
                        reason: "the file `format` holds no number".to_owned(),
                    });
                }
            },
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                std::fs::write(&format_file, format!("{FORMAT}\n"))
                    .map_err(|e| io(e.to_string()))?;
            }
            Err(e) => return Err(io(e.to_string())),
        }
        let database = Database::create(folder.join(FILE)).map_err(|e| match e {
            DatabaseError::DatabaseAlreadyOpen => StoreError::InUse {
                folder: folder.to_owned(),
            },
            DatabaseError::Storage(StorageError::Io(e))
                if e.kind() != std::io::ErrorKind::InvalidData =>
            {
                io(e.to_string())
            }
            other => StoreError::Damaged {
                folder: folder.to_owned(),
                reason: other.to_string(),
            },
        })?;
        Ok(Self {
            folder: folder.to_owned(),
            database,
        })
    }

    fn damaged(&self, error: impl std::fmt::Display) -> StoreError {
        StoreError::Damaged {
            folder: self.folder.clone(),
            reason: error.to_string(),
        }
    }

    fn read(&self) -> Result<Loaded, redb::Error> {
        // Creates the tables on first use, so that they always exist when reading.
        let write = self.database.begin_write()?;
        write.open_table(OBJECTS)?;
        write.open_table(META)?;
        write.commit()?;
        let read = self.database.begin_read()?;
        let revision = read
            .open_table(META)?
            .get("revision")?
            .map_or(0, |v| v.value());
        let mut entries = Vec::new();
        for item in read.open_table(OBJECTS)?.iter()? {
            let (key, value) = item?;
            entries.push((
                key.value().to_owned(),
                Bytes::copy_from_slice(value.value()),
            ));
        }
        Ok(Loaded { revision, entries })
    }

    fn write(&self, batch: &[Write]) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut objects = transaction.open_table(OBJECTS)?;
            let mut meta = transaction.open_table(META)?;
            let mut last = meta.get("revision")?.map_or(0, |v| v.value());
            for write in batch {
                match &write.value {
                    Some(value) => objects.insert(write.key.as_str(), value.as_ref())?,
                    None => objects.remove(write.key.as_str())?,
                };
                last = last.max(write.revision);
            }
            meta.insert("revision", last)?;
        }
        // The default durability of redb is an fsync before commit returns.
        transaction.commit()?;
        Ok(())
    }
}

impl Store for Disk {
    fn load(&self) -> Result<Loaded, StoreError> {
        self.read().map_err(|e| self.damaged(e))
    }

    fn commit(&self, batch: &[Write]) -> Result<(), StoreError> {
        self.write(batch).map_err(|e| match e {
            redb::Error::Io(e) => StoreError::Io {
                folder: self.folder.clone(),
                reason: e.to_string(),
            },
            other => self.damaged(other),
        })
    }

    fn is_durable(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, value: &'static str, revision: u64) -> Write {
        Write {
            key: key.to_owned(),
            value: Some(Bytes::from_static(value.as_bytes())),
            revision,
        }
    }

    #[test]
    fn what_was_committed_is_there_after_opening_again() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let disk = Disk::open(folder.path()).expect("opens");
        disk.load().expect("loads");
        disk.commit(&[put("a", "1", 5), put("b", "2", 6)])
            .expect("commits");
        disk.commit(&[Write {
            key: "a".to_owned(),
            value: None,
            revision: 7,
        }])
        .expect("commits");
        drop(disk);
        let loaded = Disk::open(folder.path())
            .expect("opens")
            .load()
            .expect("loads");
        assert_eq!(loaded.revision, 7);
        assert_eq!(
            loaded.entries,
            vec![("b".to_owned(), Bytes::from_static(b"2"))]
        );
    }

    #[test]
    fn a_newer_damaged_or_busy_folder_is_named_with_its_fix() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let first = Disk::open(folder.path()).expect("opens");
        assert!(matches!(
            Disk::open(folder.path()),
            Err(StoreError::InUse { .. })
        ));
        drop(first);
        std::fs::write(
            folder.path().join(FILE),
            b"not a database, but long enough to look at",
        )
        .expect("writes");
        let error = Disk::open(folder.path())
            .err()
            .expect("damaged")
            .to_string();
        assert!(
            error.contains("is damaged") && error.contains(&folder.path().display().to_string()),
            "{error}"
        );
        std::fs::write(folder.path().join("format"), "99").expect("writes");
        let error = Disk::open(folder.path()).err().expect("newer").to_string();
        assert!(error.contains("newer version (format 99"), "{error}");
    }
}
