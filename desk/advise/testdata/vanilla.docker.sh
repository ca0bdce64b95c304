# Docker with --cpus at large, number 3 of 6 for ffmpeg on bench.
# Measured: execution time 5.402 (5.381 to 5.423) s.
# Number 1, bare metal at large, cannot be expressed in docker; systemd fits.
# YOUR-IMAGE is a placeholder: write your image there.
docker run --cpus=2 --memory=8g --memory-swap=8g --shm-size=4g YOUR-IMAGE
