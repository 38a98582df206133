"""The names of files and features in a LeRobot dataset."""

VERSION = "v3.0"
INFO, STATS, TASKS = "meta/info.json", "meta/stats.json", "meta/tasks.parquet"
HEAD = "meta/counterpoint.json"  # ours
DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
EPISODES = "meta/episodes/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"

SEEN = "observation."
STATE, NEXT, ACTION = "observation.state", "next.observation.state", "action"
REWARD, DONE, TRUNCATED = "next.reward", "next.done", "next.truncated"
OURS = "counterpoint."  # in front of the columns that the format has no name for
WIDE = (f"{OURS}noise", f"{OURS}swapped")  # those of several numbers in a row
FRAME = {  # what every frame has
    "timestamp": "float32",
    "frame_index": "int64",
    "episode_index": "int64",
    "index": "int64",
    "task_index": "int64",
}
CAMERAS = ("image", "video")

FILE_BYTES, FILES = 100 * 2**20, 1000  # when a file is closed, and how many a folder holds
FPS, TASK = 10, "counterpoint"  # frames a second, and the task, where a recording does not say
