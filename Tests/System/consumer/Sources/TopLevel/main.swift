import Coffer

// Code outside of a function: the compiler chooses among overloads in another way than in one.

struct Note: Codable, Sendable, Equatable, Identifiable {
  let id: String
}

let memory = MemoryBackend()
let scope = SecretScope(service: "notes", backend: memory)
let store = Store<Note>(storage: scope)
try await store.insert(Note(id: "a"))
try await store.insert([Note(id: "b"), Note(id: "c")])
try await store.remove(Note(id: "a"))
try await store.removeAll().insert([Note(id: "d"), Note(id: "e")]).insert(Note(id: "f")).run()
try await store.remove([Note(id: "e")])
let again = Store<Note>(storage: scope)
try await again.itemsHaveLoaded()
print(again.items.map(\.id).joined(separator: " "))
try await store.removeAll()
print(store.items.count, try memory.items().count)
